"""The tests of Errand; CONTRIBUTING.md says how they are written and run."""

import os
import sys

# The hundreds of processes of the tests read compiled modules, which the first of them writes, whatever the shell says.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
