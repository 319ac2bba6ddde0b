"""Draws the app icon in the sizes required by installers and desktops: `python packaging/app_icon.py`."""

from pathlib import Path

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

FOLDER = Path(__file__).parents[1] / "resources" / "app_icon"
SIZES = (16, 24, 32, 48, 64, 128, 256, 512)


def main() -> None:
    renderer = QSvgRenderer(str(FOLDER / "errand.svg"))
    for size in SIZES:
        image = QImage(size, size, QImage.Format.Format_ARGB32)
        image.fill(Qt.GlobalColor.transparent)
        painter = QPainter(image)
        renderer.render(painter, QRectF(0, 0, size, size))
        painter.end()
        image.save(str(FOLDER / f"errand-{size}.png"))


if __name__ == "__main__":
    main()
