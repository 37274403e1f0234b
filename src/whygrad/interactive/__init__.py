"""What a person calls inside a program or notebook: `explain`, `tap`, `watch`.

The first import begins the record of backward passes, from which `explain` knows what no tensor shows.
"""

from whygrad.probe.backwards import BACKWARDS

BACKWARDS.install()
