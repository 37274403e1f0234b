"""Run the command line as `python -m whygrad`."""

import sys

from whygrad.cli import main

if __name__ == "__main__":
    sys.exit(main())
