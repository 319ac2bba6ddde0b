"""Pictures of nodes and files: their size, decoding in a thread, and a button that shows one as a thumbnail.

Only PNG, JPEG, GIF and WebP are read, told by their first bytes: any other plug-in of Qt could run for ever.
"""

import base64
import binascii
import struct
import threading
from pathlib import Path
from typing import Literal, TypeAlias

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QObject, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QImage, QImageIOHandler, QImageReader, QKeyEvent, QPainter, QPaintEvent, QPixmap, QPixmapCache
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from errand.protocol.blocks import ImageBlock
from errand.system.regular_file import read_beginning, read_regular
from errand.text.translation import tr
from errand.window.theme.style import colour, focus_by_keys, paint_focus_ring, paint_rounded, pressed_by_enter
from errand.window.theme.theme import Theme

PictureFormat: TypeAlias = Literal["png", "jpeg", "gif", "webp"]

# The maximum size of a picture file, in bytes.
MAX_BYTES = 10 * 1024 * 1024
# Enough for the dimensions, also behind the metadata of a photo.
_HEADER_BYTES = 96 * 1024
_WEBP_HEAD_BYTES = 30
# Qt refuses to decode more than 256 MB.
_MAX_PIXELS = 60_000_000
_POLL_MS = 10
# Behind transparent pictures, most of which are made for paper.
BACKING = Qt.GlobalColor.white

# Decoding takes a processor for up to 300 ms.
_decoding = threading.BoundedSemaphore(2)


def picture_format(head: bytes) -> PictureFormat | Literal[""]:
    """Return the format of a picture by its first 16 bytes; empty for any other file."""
    if head.startswith(b"\x89PNG\r\n\x1a\n") and head[12:16] == b"IHDR":
        return "png"
    if head.startswith(b"\xff\xd8\xff"):
        return "jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "gif"
    return "webp" if head.startswith(b"RIFF") and head[8:12] == b"WEBP" else ""


def picture_bytes(image: ImageBlock) -> bytes:
    """Return the file of a picture; empty if it is gone or not valid."""
    try:
        return read_regular(Path(image.path), MAX_BYTES) if image.path else base64.b64decode(image.data, validate=True)
    except (OSError, binascii.Error, ValueError):
        return b""


def picture_size(image: ImageBlock) -> QSize:
    """Its dimensions in pixels, from the beginning of the file; not valid if it cannot be read."""
    try:
        if image.path:
            head = read_beginning(Path(image.path), _HEADER_BYTES)
        else:
            head = base64.b64decode(image.data[: _HEADER_BYTES // 4 * 4])
    except (OSError, binascii.Error, ValueError):
        return QSize()
    buffer = _buffer(head)
    kind = picture_format(head)
    if kind != "jpeg":
        return _written_size(head, kind)
    reader = _reader(buffer, kind)
    size = reader.size()
    is_turned = reader.transformation().value & QImageIOHandler.Transformation.TransformationRotate90.value
    return size.transposed() if is_turned else size


def read_picture(image: ImageBlock, most: QSize) -> QImage:
    """Decode a picture at its display size, so that a huge one is cheap; a null image if it is not valid."""
    data = picture_bytes(image)
    kind = picture_format(data)
    if not kind:
        return QImage()
    buffer = _buffer(data)
    reader = _reader(buffer, kind)
    reader.setAutoTransform(True)
    size = reader.size()
    if not size.isValid() or size.width() * size.height() > _MAX_PIXELS:
        return QImage()
    if size.width() > most.width() or size.height() > most.height():
        reader.setScaledSize(fitted(size, most))
    return reader.read()


def fitted(size: QSize, most: QSize) -> QSize:
    """Return the size scaled down to fit, never up."""
    if size.width() <= most.width() and size.height() <= most.height():
        return size
    return size.scaled(most, Qt.AspectRatioMode.KeepAspectRatio).expandedTo(QSize(1, 1))


class _Job:
    """A picture to decode in a thread; `result` is set at the end."""

    def __init__(self, image: ImageBlock, most: QSize) -> None:
        self.image = image
        self.most = most
        self.is_wanted = True
        self.result: QImage | None = None

    def run(self) -> None:
        with _decoding:
            self.result = read_picture(self.image, self.most) if self.is_wanted else QImage()


class PictureLoader(QObject):
    """Decodes one picture at a time outside of the GUI thread; `loaded` gives it, a null image if it is not valid."""

    loaded = Signal(QImage)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._job: _Job | None = None
        # Signals from a thread could reach an object that is being deleted.
        self._timer = QTimer(self, interval=_POLL_MS)
        self._timer.timeout.connect(self._on_timeout)

    def load(self, image: ImageBlock, most: QSize) -> None:
        """Replaces a picture that is still being decoded."""
        self.cancel()
        self._job = _Job(image, most)
        threading.Thread(target=self._job.run, name="picture", daemon=True).start()
        self._timer.start()

    def cancel(self) -> None:
        if self._job is not None:
            self._job.is_wanted = False
            self._job = None
        self._timer.stop()

    def _on_timeout(self) -> None:
        if self._job is not None and self._job.result is not None:
            result = self._job.result
            self.cancel()
            self.loaded.emit(result)


class PictureButton(QAbstractButton):
    """A picture scaled down to at most `most` and the width of its column; its place is kept while it is decoded.

    `unreadable` is emitted if it is not valid.
    """

    unreadable = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._size = QSize()
        self._cache_key = ""
        self.picture = QPixmap()
        self._loader = PictureLoader(self)
        self._loader.loaded.connect(self._on_loaded)
        focus_by_keys(self)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def show_picture(self, image: ImageBlock, name: str, most: QSize) -> bool:
        """Return False if it cannot be read."""
        self._loader.cancel()
        ratio = self.devicePixelRatioF()
        size = picture_size(image)
        self.picture = QPixmap()
        if not size.isValid():
            return False
        self._size = fitted(size, most)
        self.setAccessibleName(tr("Enlarge picture {name}").format(name=name) if name else tr("Enlarge picture"))
        self._cache_key = f"{image.path or hash(image.data)} {most.width()} {most.height()} {ratio}"
        cached = QPixmap()
        if QPixmapCache.find(self._cache_key, cached):
            self.picture = cached
        else:
            self._loader.load(image, most * ratio)
        self.updateGeometry()
        self.update()
        return True

    def _on_loaded(self, image: QImage) -> None:
        if image.isNull():
            self.unreadable.emit()
            return
        self.picture = QPixmap.fromImage(image)
        QPixmapCache.insert(self._cache_key, self.picture)
        self.update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not pressed_by_enter(self, event):
            super().keyPressEvent(event)

    def sizeHint(self) -> QSize:
        return self._size

    def minimumSizeHint(self) -> QSize:
        return QSize(1, 1)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        hint = self.sizeHint()
        return hint.height() if width >= hint.width() else round(hint.height() * width / max(1, hint.width()))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, tokens = QPainter(self), self._theme.tokens
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        if self.picture.isNull():
            paint_rounded(painter, self.rect(), tokens.radius_control, fill=tokens.code)
        else:
            if self.picture.hasAlphaChannel():
                painter.fillRect(self.rect(), BACKING)
            painter.drawPixmap(self.rect(), self.picture)
            painter.setPen(colour(tokens.hairline))
            painter.drawRect(self.rect().adjusted(0, 0, -1, -1))
        if self.hasFocus():
            paint_focus_ring(painter, self.rect(), tokens, tokens.radius_control)


def _reader(buffer: QBuffer, kind: PictureFormat) -> QImageReader:
    """Return a reader of this format that tries no other one."""
    reader = QImageReader(buffer, QByteArray(kind.encode()))
    reader.setAutoDetectImageFormat(False)
    return reader


def _written_size(head: bytes, kind: str) -> QSize:
    """Return the size that the header of a PNG, GIF or WebP file names; not valid for others."""
    try:
        match kind:
            case "png":
                return QSize(*struct.unpack_from(">ii", head, 16))
            case "gif":
                return QSize(*struct.unpack_from("<HH", head, 6))
            case "webp":
                return _webp_size(head)
            case _:
                return QSize()
    except struct.error:
        return QSize()


def _webp_size(head: bytes) -> QSize:
    """Return the size of a WebP file, which has one of three headers (RFC 9649)."""
    match head[12:16] if len(head) >= _WEBP_HEAD_BYTES else b"":
        case b"VP8X":
            return QSize(1 + int.from_bytes(head[24:27], "little"), 1 + int.from_bytes(head[27:30], "little"))
        case b"VP8L":
            bits = int.from_bytes(head[21:25], "little")
            return QSize(1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF))
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", head, 26)
            return QSize(width & 0x3FFF, height & 0x3FFF)
        case _:
            return QSize()


def _buffer(data: bytes) -> QBuffer:
    buffer = QBuffer()
    buffer.setData(QByteArray(data))
    buffer.open(QIODevice.OpenModeFlag.ReadOnly)
    return buffer
