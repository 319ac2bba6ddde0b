"""The content of a drop or a paste: files, a picture, long text.

Also the hint shown while dragging, and the files made of pasted content.
"""

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from PySide6.QtCore import QBuffer, QIODevice, QMimeData, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from errand.window.theme.theme import Theme
from errand.window.widgets.pictures import picture_format

# Qt lays out the whole line on each key press: 40 ms at this length (measured).
_MAX_LINE_LENGTH = 50_000
_MAX_TEXT_LENGTH = 1_100_000  # longer than the engine accepts as one message
_PICTURE_KINDS = ("image/png", "image/jpeg", "image/gif", "image/webp")

_OVERLAY_OPACITY = 225  # alpha, of 255


@dataclass(frozen=True, slots=True)
class DropPayload:
    """`paths` of files and folders, or a picture, or a `text` that is too long for the text field.

    `picture_file` is a picture as another program gave it, not decoded; `picture` one that the desktop has decoded.
    """

    paths: tuple[str, ...] = ()
    picture: QImage | None = None
    picture_file: bytes = b""
    text: str = ""


def can_attach(mime: QMimeData) -> bool:
    """Return True if the data contains something to attach. Text with a picture of itself counts as text."""
    has_picture = mime.hasImage() or any(mime.hasFormat(kind) for kind in _PICTURE_KINDS)
    return bool(_paths(mime)) or (has_picture and not mime.hasText()) or _is_long(mime.text())


def drop_payload(mime: QMimeData) -> DropPayload:
    paths = _paths(mime)
    if paths:
        return DropPayload(paths)
    if mime.hasText():
        return DropPayload(text=mime.text())
    kinds = [kind for kind in mime.formats() if kind.startswith("image/")]
    if kinds:
        return DropPayload(picture_file=_picture_file(mime, kinds))
    picture: object = mime.imageData()
    return DropPayload(picture=picture if isinstance(picture, QImage) else None)


def _picture_file(mime: QMimeData, kinds: list[str]) -> bytes:
    """Return the first picture of a format that is read, as it was given. Qt would decode any, here and now."""
    for kind in sorted(kinds, key=lambda kind: kind != "image/png"):
        if kind in _PICTURE_KINDS:
            data = bytes(mime.data(kind).data())
            if picture_format(data):
                return data
    return b""


def _is_long(text: str) -> bool:
    return len(text) > _MAX_TEXT_LENGTH or (
        len(text) > _MAX_LINE_LENGTH and max(map(len, text.split("\n"))) > _MAX_LINE_LENGTH
    )


def _paths(mime: QMimeData) -> tuple[str, ...]:
    urls = mime.urls() if mime.hasUrls() else []
    return tuple(url.toLocalFile() for url in urls) if all(url.isLocalFile() for url in urls) else ()


class PastedFiles:
    """Writes pasted content to files in `folder`, which is created on first use."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def save_image(self, image: QImage) -> str:
        """Store a picture as PNG; returns its path. Raises OSError."""
        buffer = QBuffer()
        buffer.open(QIODevice.OpenModeFlag.WriteOnly)
        image.save(buffer, "PNG")  # pyright: ignore[reportArgumentType, reportCallIssue] -- PySide6's stubs want bytes for the format and take no str
        return self._write(bytes(buffer.data().data()), "png")

    def save_picture_file(self, data: bytes) -> str:
        """Store a picture as it is; returns its path. Raises OSError."""
        return self._write(data, picture_format(data))

    def save_text(self, text: str) -> str:
        """Store a text; returns its path. Raises OSError."""
        return self._write(text.encode("utf-8", "replace"), "txt")

    def delete(self, path: str) -> None:
        """Delete a file that is not sent after all, if it was pasted."""
        if Path(path).parent == self._folder:
            Path(path).unlink(missing_ok=True)

    def _write(self, data: bytes, ending: str) -> str:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = datetime.now().astimezone().strftime("pasted %Y-%m-%d %H.%M.%S.%f")
        path = self._folder / f"{name}.{ending}"
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
        return str(path)


class DropHintView(QWidget):
    """Covers the widget `over` while it is visible; transparent for the mouse."""

    def __init__(self, theme: Theme, over: QWidget) -> None:
        super().__init__(over)
        self._theme = theme
        self._target = over
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()

    def show_text(self, text: str) -> None:
        self.setAccessibleName(text)
        self.setGeometry(self._target.rect())
        self.raise_()
        self.show()

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = self._theme.tokens
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        veil = QColor(tokens.page)
        veil.setAlpha(_OVERLAY_OPACITY)
        painter.fillRect(self.rect(), veil)
        space = tokens.space_wide
        frame = QRectF(self.rect()).adjusted(space, space, -space, -space)
        painter.setPen(QPen(QColor(tokens.accent), 2, Qt.PenStyle.DashLine))
        painter.setBrush(QColor(tokens.accent_soft))
        painter.drawRoundedRect(frame, tokens.radius_card, tokens.radius_card)
        painter.setPen(QColor(tokens.text))
        painter.setFont(self._theme.font(tokens.size_large, bold=True))
        painter.drawText(frame, Qt.AlignmentFlag.AlignCenter, self.accessibleName())
