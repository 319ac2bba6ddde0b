"""Icons: Lucide's outlines from `resources/icons`, drawn in a colour of the theme."""

from functools import cache
from importlib.resources import files
from pathlib import Path

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

_FOLDER = Path(str(files("resources") / "icons"))
_APP_ICONS = Path(str(files("resources") / "app_icon"))
_PIXELS = (16, 20, 24, 32, 40, 48, 64)
"""16 and 20 at scales 1, 1.5, 2 and 3, and what empty places show."""


def app_icon() -> QIcon:
    """Errand's own icon, in the sizes that `packaging/app_icon.py` draws."""
    icon = QIcon()
    for file in _APP_ICONS.glob("errand-*.png"):
        icon.addFile(str(file))
    return icon


def draw(name: str, colour: str, disabled: str) -> QIcon:
    """The icon `name`, in `colour` and, where its button is disabled, in `disabled`."""
    icon = QIcon()
    for mode, tint in ((QIcon.Mode.Normal, colour), (QIcon.Mode.Disabled, disabled)):
        renderer = QSvgRenderer(QByteArray(_outline(name).replace("currentColor", tint).encode()))
        for pixels in _PIXELS:
            icon.addPixmap(_picture(renderer, pixels), mode)
    return icon


def _picture(renderer: QSvgRenderer, pixels: int) -> QPixmap:
    picture = QPixmap(pixels, pixels)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    renderer.render(painter, QRectF(0, 0, pixels, pixels))
    painter.end()
    return picture


@cache
def _outline(name: str) -> str:
    return (_FOLDER / f"{name}.svg").read_text(encoding="utf-8")
