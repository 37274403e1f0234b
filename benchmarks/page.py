"""The page of the results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks import aims, table

_HEAD = """\
Written by `make bench`, from `results.json`. The time of a step as a multiple of that of the plain loop: median
[quartiles] of the rounds. An aim stands beside its number; where it was missed, the number is **bold**."""

_NOISE = """\
*Plain again* is the plain loop a second time: whatever differs from 1 there is noise. *Not resolved* means that the
noise, between the quartiles of that line, is wider than what would have to be seen."""

_VARIANTS = """\
- **plain loop**: zero_grad, forward, backward, step; nothing else.
- **whygrad**: `whygrad run train.py`, as it comes. It records the first steps densely and later ones as the budget of
  2% allows; the numbers are those of whole runs of that length, start included ([more below](#the-default-mode)).
- **whygrad --every 1**: every step recorded in full: parameters and outputs, weights and updates, histograms. After its
  first steps, all of which it looks at call by call and node by node; later it does so at one step in 17, then 67.
- **the lesson's hook**: `register_hook` on every parameter, with `g.abs().mean().item(), g.std().item()`.
- **and a hook per module**: the same, and `register_full_backward_hook` on every module, with the same two numbers.
- **retain_grad, all outputs**: on the output of every module, read after backward.
- **detect_anomaly**: `torch.autograd.set_detect_anomaly(True)`.
- **Lightning grad_norm**: `lightning.pytorch.utilities.grad_norm(model, 2)` after backward.
- **wandb.watch**: `log="all", log_freq=1`, offline. It hands its numbers to a process of its own, which is not counted.
- **torchlens**: `trace(...)` with `save_grads=True` and `log_backward` at every step: made to look at one step."""

_METHOD = """\
Every variant is a process of its own, with the same model, the same data and one thread. They take turns, in another
order each round, with the plain loop among them; the ratio is to the plain loop of the same round, in processor time,
so that a machine that does something else meanwhile changes it little. A variant that is slow makes fewer steps a turn.
whygrad's clock stands still while others have their turn. After the last round each variant makes one more step that
checks that every hook fired and that the numbers are right: against autograd's own answer, and against the run file."""

_DEFAULT = """\
In its default mode whygrad measures what it takes itself, and keeps that at 2% of a run that is longer than a minute.
What the share of a minute comes to may be spent at once, on the first steps; where a few dozen steps take more, that of
five minutes. One number would flatter: a run shorter than that pays more, and right after the start nothing is recorded
until the budget has caught up. So the first table has whole runs of two lengths (processor time): the start as it was
measured, traced steps included, and the rest at the ratio *after the start*, over all rounds together, as only some
hold a recorded step. What it takes to import whygrad and to
print the verdict comes on top. *The verdict says* is whygrad's own measurement of the whole process that was measured
here, by the clock. *Took / counted* is what the start took beyond plain steps over what whygrad counted of it: above 1
is what hooks cost torch, and what the probe displaces from the processor's caches, which the budget does not see."""

_KERNELS = """\
All gradients of a step, measured in place between backward and step, in multiples of the time that one read of them
takes (`sum` of each). *Statistics* are all eight numbers of each tensor, exact. The *sampled histogram* is what whygrad
records: of tensors of more than 65,536 elements, one block in eight, labelled so. *Statistics / lesson* is the time of
the statistics over that of the lesson's two numbers. Models of a few small tensors pay for calls, not for reading."""

_STORAGE = """\
With `--every 1`. A row is one tensor in one role: gradient, weight, update, output, its gradient. It holds 64 bytes of
statistics; the rest of its bytes is its share of what SQLite needs for a step: pages, indexes, the step's own row. The
gradients of parameters have a histogram each, 128 bytes, not counted in the rows. *Once* does not grow with steps."""

_MEMORY = """\
What `--every 1` adds to the peak of the process, over a plain one that has imported whygrad's code (whose size is the
last column). The aim is {largest} times the largest parameter. The two columns between are what more steps, and then a
larger batch change: what waits to be written is bounded. What remains for small models is what a session holds whatever
the model: its tables, SQLite, the parsed source of the program."""

_STARTUP = """\
Processor time of whole processes, by `python -m benchmarks.startup`. *Adds* is the difference to the plain program,
round by round. The runs that are reported on have 4, 300 and 4 parameters; of the longest, one step in 50 is recorded.
"""

_PARTS = """\
A step under `--every 1`, by part of the probe. *Steps* holds the statistics of gradients, weights and updates, and the
writing of the run file; *outputs* those of module outputs and of their gradients. *Beside them* is the guard around
each callback, the calls of hooks in torch, and what the probe displaces from the processor's caches.
`python -m benchmarks.parts WORKLOAD` prints it by function.

Two things set the limit. Large models: each number has to be read. The ResNet's outputs hold five times as much as its
gradients, and are read in forward and, as gradients, in backward; with gradients, weights and updates that is a dozen
times what *one read* takes, 6% of its step, before anything is computed. Small models: each tensor costs some dozen
calls from Python, twenty microseconds in all with cold caches, whatever its size; the MLP has 6 parameters, 6 outputs
and as many gradients, and its step of 4 ms is that of 200 such tensors."""


def markdown(results: Mapping[str, Any]) -> str:
    """Return the whole page."""
    workloads: table.Workloads = results["workloads"]
    parts = [
        "# What watching costs",
        _HEAD,
        table.ratio_table(results, quartiles=True),
        _NOISE,
        _VARIANTS,
        "## How it was measured",
        _METHOD,
        table.rounds_table(workloads),
        "## The default mode",
        _DEFAULT,
        table.default_table(workloads),
        "## The kernels",
        _KERNELS,
        table.kernel_table(workloads),
        "## On disk",
        _STORAGE,
        table.storage_table(workloads),
        "## In memory",
        _MEMORY.format(largest=aims.LARGEST),
        table.memory_table(workloads),
        "## What the rest is made of",
        _PARTS,
        table.parts_table(workloads),
    ]
    if "startup" in results:
        parts += ["## Starting, and reading", _STARTUP.strip(), table.startup_table(results["startup"])]
    return "\n\n".join(parts)
