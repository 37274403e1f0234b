"""Where a parameter's path to the loss ends, and at which line of the program."""

from whygrad.probe.dataflow.dataflow import Dataflow as Dataflow
from whygrad.probe.dataflow.result import Cut as Cut
from whygrad.probe.dataflow.result import PathEnd as PathEnd
