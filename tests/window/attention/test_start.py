"""The start of the window: nothing that only serves attention is loaded before the first paint."""

import subprocess
import sys

_LOADED = "import app.window.main, sys; print([name for name in sys.modules if 'attention' in name or 'dbus' in name])"


def test_the_first_paint_waits_for_nothing_of_this() -> None:
    done = subprocess.run([sys.executable, "-c", _LOADED], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
