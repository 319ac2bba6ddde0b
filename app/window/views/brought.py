"""What a drop or a paste brings that can be attached: files and folders of this machine, or a picture."""

from dataclasses import dataclass

from PySide6.QtCore import QMimeData
from PySide6.QtGui import QImage


@dataclass(frozen=True, slots=True)
class Brought:
    """`paths` of files and folders, or else a `picture`."""

    paths: tuple[str, ...] = ()
    picture: QImage | None = None


def holds(mime: QMimeData) -> bool:
    """True for what `brought` finds something in. Text that comes with a picture of itself is text."""
    return bool(_paths(mime)) or (mime.hasImage() and not mime.hasText())


def brought(mime: QMimeData) -> Brought:
    paths = _paths(mime)
    if paths:
        return Brought(paths)
    picture: object = mime.imageData()
    return Brought(picture=picture if isinstance(picture, QImage) else None)


def _paths(mime: QMimeData) -> tuple[str, ...]:
    urls = mime.urls() if mime.hasUrls() else []
    return tuple(url.toLocalFile() for url in urls) if all(url.isLocalFile() for url in urls) else ()
