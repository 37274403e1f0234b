"""Starting a program under whygrad, and what happens when it ends.

`whygrad run` replaces itself with the very command that `python` would run (`command`). A start-up shim in that
interpreter (`shim/sitecustomize.py`) waits for the program to import torch and switches the probe on (`watch`, `boot`);
at the end of the program, after everything of its own, the verdict is spoken (`finish`). Where no shim can work, the
program runs inside the process of `whygrad run` (`runner`) and keeps the same promise.
"""
