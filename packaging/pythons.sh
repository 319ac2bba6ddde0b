#!/bin/sh
# Installs Errand with each Python it supports that is found here, in build/pythons, and runs tests of all its parts.
# The whole suite runs with one Python: `make test PYTHON=python3.13` uses another.
set -eu
TESTS="tests/cli tests/client tests/protocol tests/engine/core tests/engine/agent/loop tests/engine/models/catalog
tests/window/theme tests/window/views/shell tests/end_to_end/terminal/test_terminal.py"
tried=0
for version in 3.11 3.12 3.13; do
    python=
    for found in "python$version" "$HOME/.pyenv/versions/$version".*/bin/python; do
        if "$found" -c "import sys; sys.exit(sys.version_info[:2] != tuple(map(int, '$version'.split('.'))))" 2>/dev/null; then
            python=$found
        fi
    done
    if [ -z "$python" ]; then
        echo "python $version: not here"
        continue
    fi
    place=build/pythons/$version
    [ -x "$place/bin/python" ] || "$python" -m venv "$place"
    "$place/bin/python" -m pip install -q -c packaging/lock.txt -e '.[dev]'
    # shellcheck disable=SC2086 -- several words are meant
    "$place/bin/python" -m pytest -q -p no:cacheprovider $TESTS
    echo "python $version: $("$place/bin/python" -V) works"
    tried=$((tried + 1))
done
[ "$tried" -gt 0 ]
