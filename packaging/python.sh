#!/bin/sh
# Checks the Python given to `make setup` before anything is installed, and says what is wrong with it.
python=${1:-python3}
if ! command -v "$python" >/dev/null 2>&1; then
    echo "Errand needs Python 3.11 or newer; '$python' is not there. Install it, or name yours: make setup PYTHON=/path/to/python3" >&2
    exit 1
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "Errand needs Python 3.11 or newer; $python is $("$python" -V 2>&1). Name another: make setup PYTHON=/path/to/python3" >&2
    exit 1
fi
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    echo "Python's venv module is missing. On Debian and Ubuntu: apt-get install python3-venv" >&2
    exit 1
fi
