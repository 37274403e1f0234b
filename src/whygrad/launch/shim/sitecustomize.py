"""Start-up of a watched interpreter, which finds this in place of any other `sitecustomize`.

`whygrad run` puts this folder at the head of PYTHONPATH. The first thing done here is to take that back, so that the
program, and every process it starts, sees the environment and the `sys.path` it would see under plain `python`. Then a
standby is armed (`launch/standby.py`), and the `sitecustomize` that this one stands before has its turn.

Every program that is watched pays for this at its start: it imports nothing that costs more than a millisecond.
"""

import sys
from importlib.machinery import SourceFileLoader
from os import environ, path


def _take_back(shim: str) -> str:
    """Undo what `whygrad run` changed for this interpreter, and return the options it passed on."""
    options = environ.pop("WHYGRAD_RUN")
    pythonpath = environ.pop("WHYGRAD_PYTHONPATH", None)
    if pythonpath is None:
        environ.pop("PYTHONPATH", None)
    else:
        environ["PYTHONPATH"] = pythonpath
    sys.path[:] = [entry for entry in sys.path if entry != shim]
    sys.path_importer_cache.pop(shim, None)
    return options


def _arm(launch: str, options: str) -> None:
    # Loaded by its file and kept out of `sys.modules`: which `whygrad` the program imports stays its own affair.
    module = type(sys)("whygrad.launch.standby")
    SourceFileLoader(module.__name__, path.join(launch, "standby.py")).exec_module(module)
    module.Standby(path.dirname(launch), options).arm()


try:
    _shim = path.dirname(path.abspath(__file__))
    _arm(path.dirname(_shim), _take_back(_shim))
except Exception as error:
    sys.stderr.write(f"whygrad: internal error: {error!r} (the program was not affected)\n")

# This module makes way: the import below finds the other `sitecustomize`, and the import of this one returns it. Where
# there is no other, the ImportError is the one that `site` expects in that case, and passes over.
sys.modules.pop(__name__, None)
__import__("sitecustomize")
