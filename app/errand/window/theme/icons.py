"""Lucide's SVG icons from resources/icons, tinted on loading; the app icon."""

from functools import cache
from importlib.resources import files
from pathlib import Path

from PySide6.QtCore import QByteArray, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QIcon, QIconEngine, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

_FOLDER = Path(str(files("errand.resources") / "icons"))
_APP_ICONS = Path(str(files("errand.resources") / "app_icon"))


def app_icon() -> QIcon:
    """Errand's icon, in the sizes that `packaging/app_icon.py` draws."""
    icon = QIcon()
    for file in _APP_ICONS.glob("errand-*.png"):
        icon.addFile(str(file))
    return icon


def render_icon(name: str, colour: str, disabled: str) -> QIcon:
    """Return the icon `name` in `colour`, and in `disabled` on a disabled button."""
    return QIcon(_keep_alive(_Outline(name, colour, disabled)))


class _Outline(QIconEngine):
    """Renders each size on demand and caches it: rendering all icons took a tenth of the first paint."""

    def __init__(self, name: str, colour: str, disabled: str) -> None:
        super().__init__()
        self._key = (name, colour, disabled)
        self._drawn: dict[tuple[int, int, bool, float], QPixmap] = {}

    def pixmap(self, size: QSize, mode: QIcon.Mode, state: QIcon.State) -> QPixmap:
        return self._drawn_once(size, mode, 1.0)

    def paint(self, painter: QPainter, rect: QRect, mode: QIcon.Mode, state: QIcon.State) -> None:
        """Draw a picture in the resolution of the screen: parsing and drawing the outline takes 20 times as long."""
        painter.drawPixmap(rect, self._drawn_once(rect.size(), mode, painter.device().devicePixelRatio()))

    def _drawn_once(self, size: QSize, mode: QIcon.Mode, ratio: float) -> QPixmap:
        key = (size.width(), size.height(), mode == QIcon.Mode.Disabled, ratio)
        if key not in self._drawn:
            self._drawn[key] = self._picture(size * ratio, mode)
        return self._drawn[key]

    def clone(self) -> QIconEngine:
        return _keep_alive(_Outline(*self._key))

    def _picture(self, size: QSize, mode: QIcon.Mode) -> QPixmap:
        picture = QPixmap(size)
        picture.fill(Qt.GlobalColor.transparent)
        painter = QPainter(picture)
        side = min(size.width(), size.height())
        self._renderer(mode).render(painter, QRectF((size.width() - side) / 2, (size.height() - side) / 2, side, side))
        painter.end()
        return picture

    def _renderer(self, mode: QIcon.Mode) -> QSvgRenderer:
        name, colour, disabled = self._key
        tint = disabled if mode == QIcon.Mode.Disabled else colour
        return QSvgRenderer(QByteArray(_outline(name).replace("currentColor", tint).encode()))


_engines: list[_Outline] = []


def _keep_alive(engine: _Outline) -> _Outline:
    """Keep a reference forever: an engine that Python collects before its icon is freed twice, and Qt crashes."""
    _engines.append(engine)
    return engine


@cache
def _outline(name: str) -> str:
    return (_FOLDER / f"{name}.svg").read_text(encoding="utf-8")
