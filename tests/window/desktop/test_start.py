"""The start of the window: modules not needed for the first paint are not loaded before it."""

import subprocess
import sys
from pathlib import Path

_LATER = ("asyncio", "qasync", "websockets", "dbus_fast", "errand.client.connection", "errand.window.desktop")
_LOADED = f"""
import sys
from pathlib import Path
from PySide6.QtWidgets import QApplication
from errand.system.paths import Paths
from errand.window import main
from errand.window.main import wait_for_first_paint
application, paths = QApplication([]), Paths(Path(sys.argv[1]))
state, theme, stores = main.prepare(application, paths)
window = main.build_window(application, stores, paths, state, theme)
window.show()
wait_for_first_paint(window)
print([name for name in {_LATER} if name in sys.modules])
"""


def test_the_first_paint_needs_no_event_loop_connection_or_desktop_integration(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _LOADED, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_imports_of_the_window_read_no_sources() -> None:
    """The window replaces the `__import__` of PySide, which reads them."""
    code = "import errand.window.main, linecache; print([name for name in linecache.cache if 'errand' in name])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
