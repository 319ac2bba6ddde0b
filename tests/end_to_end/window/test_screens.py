"""The window and its dialogs on screens of other sizes: a process with screens of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.limits import WAIT_LIMIT_S

# Opens the window of `home` with stores that are not connected, resizes it, and prints sizes.
_SCRIPT = """
import json, sys
from pathlib import Path
from PySide6.QtCore import QEvent, QPoint
from PySide6.QtWidgets import QApplication
from errand.client.launch import connect
from errand.system.paths import Paths
from errand.window.main import build_window, prepare

home, size, names = Path(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3:]
application = QApplication([])
paths = Paths(home)
paths.prepare()
state, theme, stores = prepare(application, paths)
window = build_window(application, stores, paths, state, theme)
window.show()
if size:
    window.resize(*size)
application.processEvents()

def frame(widget):
    geometry = widget.frameGeometry()
    return [geometry.left(), geometry.top(), geometry.right() + 1, geometry.bottom() + 1]

frames = {"window": frame(window)}
window.commands.trigger("own_window")
application.processEvents()
for own in window.conversations.windows:
    frames["own"] = frame(own)
for name in names:
    before = set(application.topLevelWidgets())
    window.commands.trigger(name)
    application.processEvents()
    (dialog,) = (widget for widget in set(application.topLevelWidgets()) - before if widget.isVisible())
    frames[name] = frame(dialog)
    dialog.close()
window.close_for_good()
state.flush()
print(json.dumps(frames))
"""


def open_on(screen: tuple[int, int], home: Path, size: tuple[int, ...] = (), *actions: str) -> dict[str, list[int]]:
    """Open the window as a process on one screen; returns the frames of its windows: left, top, right and bottom."""
    config = home.parent / "screens.json"
    width, height = screen
    shape = {"name": "one", "x": 0, "y": 0, "width": width, "height": height, "logicalDpi": 96, "dpr": 1}
    config.write_text(json.dumps({"screens": [shape]}))
    environment = os.environ | {"QT_QPA_PLATFORM": f"offscreen:configfile={config}"}
    command = [sys.executable, "-c", _SCRIPT, str(home), json.dumps(size), *actions]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=WAIT_LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr
    frames: dict[str, list[int]] = json.loads(done.stdout.splitlines()[-1])
    return frames


def fits(frame: list[int], screen: tuple[int, int]) -> bool:
    return frame[2] - frame[0] <= screen[0] and frame[3] - frame[1] <= screen[1]


@pytest.mark.parametrize("screen", [(1366, 768), (1024, 600), (3840, 2160)])
def test_every_window_of_a_first_start_fits_its_screen(tmp_path: Path, screen: tuple[int, int]) -> None:
    dialogs = ("settings", "usage", "memory", "shortcuts", "ask_models")
    frames = open_on(screen, tmp_path / "home", (), *dialogs)
    assert set(frames) == {"window", "own", *dialogs}
    assert [name for name, frame in frames.items() if not fits(frame, screen)] == []


def test_a_window_that_was_large_fits_a_smaller_screen_and_stays_large_on_its_own(tmp_path: Path) -> None:
    home = tmp_path / "home"
    open_on((3840, 2160), home, (3000, 2000))
    left, _, right, _ = open_on((3840, 2160), home)["window"]
    assert right - left >= 3000
    frames = open_on((1366, 768), home)
    assert all(fits(frame, (1366, 768)) for frame in frames.values())
