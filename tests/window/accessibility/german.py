"""The walk through all views in German, in a process of its own: texts are translated when modules are imported.

`python -m tests.window.accessibility.german FOLDER` prints one line for each finding, and `done` at the end.
"""

import asyncio
import os
import sys
from pathlib import Path

os.environ["QT_QPA_PLATFORM"] = "offscreen"
os.environ["HOME"] = sys.argv[1]  # where skills are installed

from errand.text.translation import use_language

use_language("de")

from PySide6.QtWidgets import QApplication, QLineEdit  # noqa: E402

from errand.window.main import translate_qt  # noqa: E402
from errand.window.theme.theme import Theme  # noqa: E402
from tests.window.accessibility.full_window import window_fixture  # noqa: E402
from tests.window.accessibility.walk import findings_in_texts  # noqa: E402


def menu_texts() -> list[str]:
    """Return the texts of Qt's own context menu of a text field."""
    field = QLineEdit("text")
    menu = field.createStandardContextMenu()
    texts = [entry.text() for entry in menu.actions() if entry.text()]
    menu.deleteLater()
    field.deleteLater()
    return texts


async def _walk(application: QApplication, home: Path) -> None:
    theme = Theme()
    theme.set_mode("light")
    theme.apply(application)
    async with window_fixture(application, theme, home) as fixture:
        for finding in await findings_in_texts(fixture):
            sys.stdout.write(f"{finding}\n")
    sys.stdout.write("done\n")


if __name__ == "__main__":
    application = QApplication(["errand"])
    translate_qt(application)
    if not menu_texts()[0].startswith("&Rückgängig"):
        sys.stdout.write(f"Qt speaks English: {menu_texts()}\n")
    asyncio.run(_walk(application, Path(sys.argv[1])))
