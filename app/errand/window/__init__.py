"""The Qt window, one client of the engine among others.

Arrows: main > desktop > views > transcript, stores > rows > widgets > theme. Start with main.py, then
views/shell/main_window.py.
"""

import builtins

# From here on `__import__` is PySide's.
import PySide6.QtCore  # noqa: F401  # pyright: ignore[reportUnusedImport] -- for its effect

# That one reads the source of every module, to learn whether it may use `from __feature__ import …`, which Errand does
# not. It would keep 10 MB of source lines, and take a tenth of the start.
builtins.__import__ = getattr(builtins, "__orig_import__", builtins.__import__)

CLIENT_NAME = "errand window"
"""How the engine knows the window: who answered, stopped and added."""
