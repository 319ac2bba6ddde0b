"""What a drop or a paste brings that can be attached: files and folders of this machine, a picture, or a long text."""

from dataclasses import dataclass

from PySide6.QtCore import QMimeData
from PySide6.QtGui import QImage

# At each key Qt lays a line out anew: 40 ms for one of this length (measured).
_LONGEST_LINE = 50_000
_LONGEST_TEXT = 1_100_000  # more than the engine takes as one message


@dataclass(frozen=True, slots=True)
class Brought:
    """`paths` of files and folders, or else a `picture`, or else a `text` that is too long to be written in."""

    paths: tuple[str, ...] = ()
    picture: QImage | None = None
    text: str = ""


def holds(mime: QMimeData) -> bool:
    """True for what `brought` finds something in. Text that comes with a picture of itself is text."""
    return bool(_paths(mime)) or (mime.hasImage() and not mime.hasText()) or _is_long(mime.text())


def brought(mime: QMimeData) -> Brought:
    paths = _paths(mime)
    if paths:
        return Brought(paths)
    if mime.hasText():
        return Brought(text=mime.text())
    picture: object = mime.imageData()
    return Brought(picture=picture if isinstance(picture, QImage) else None)


def _is_long(text: str) -> bool:
    return len(text) > _LONGEST_TEXT or (len(text) > _LONGEST_LINE and max(map(len, text.split("\n"))) > _LONGEST_LINE)


def _paths(mime: QMimeData) -> tuple[str, ...]:
    urls = mime.urls() if mime.hasUrls() else []
    return tuple(url.toLocalFile() for url in urls) if all(url.isLocalFile() for url in urls) else ()
