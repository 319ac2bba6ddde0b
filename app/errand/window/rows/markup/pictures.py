"""Pictures in documents: a link that loads one, and the picture in its place."""

from collections.abc import Callable

from PySide6.QtCore import QRect, QRectF, QSizeF, Qt
from PySide6.QtGui import (
    QColor,
    QPainter,
    QPixmap,
    QPyTextObject,
    QTextBlock,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextImageFormat,
)

from errand.client.safe_text import plain
from errand.text.translation import tr
from errand.window.rows.markup.source import NO_TEXT
from errand.window.rows.markup.text_objects import (
    ADDRESS,
    IS_REST,
    OBJECT,
    PICTURE_TYPE,
    SOURCE,
    move_lines_apart,
    object_fragments,
)
from errand.window.rows.markup.web_pictures import WebPicture, host_of_picture, picture_link
from errand.window.theme.theme import Theme

MAX_HEIGHT = 480

_MAX_ALT = 200

# The state of the picture at an address, and what is decoded of it.
FindPicture = Callable[[str], tuple[WebPicture, QPixmap | None]]


def replace_images(block: QTextBlock, cursor: QTextCursor, theme: Theme, find: FindPicture | None) -> None:
    """Replace the images of a paragraph, so that nothing that a text names is fetched by itself.

    Without `find` they are links.
    """
    images: list[tuple[int, int, QTextImageFormat]] = []
    iterator = block.begin()
    while not iterator.atEnd():
        fragment = iterator.fragment()
        if fragment.charFormat().isImageFormat():
            images.append((fragment.position(), fragment.length(), fragment.charFormat().toImageFormat()))
        iterator += 1
    for position, length, image in reversed(images):
        cursor.setPosition(position)
        cursor.setPosition(position + length, QTextCursor.MoveMode.KeepAnchor)
        _replace(cursor, image, theme, find)


def _replace(cursor: QTextCursor, image: QTextImageFormat, theme: Theme, find: FindPicture | None) -> None:
    url, alt = image.name(), image.stringProperty(QTextFormat.Property.ImageAltText).replace(NO_TEXT, "")
    host, name = host_of_picture(url), plain(alt)[:_MAX_ALT]
    writer = _Writer(cursor, f"![{alt}]({url})", theme)
    if find is None or not host:
        writer.link(tr("Load {name} ({address})").format(name=name or tr("a picture"), address=url), url)
        return
    picture, pixmap = find(url)
    if picture.status == "loaded" and pixmap is not None:
        writer.picture(url, pixmap)
        return
    if name:
        writer.text(f"{name} · ")
    match picture.status:
        case "unloaded":
            writer.link(tr("Load picture from {host}").format(host=host), picture_link("load", url))
        case "loading" | "loaded":
            writer.text(tr("Loading picture from {host}…").format(host=host))
        case "private":
            writer.text(tr("{host} is in your network or on this computer.").format(host=plain(picture.reason)) + " ")
            writer.link(tr("Load picture anyway"), picture_link("load_private", url))
        case "failed":
            writer.text(f"{plain(picture.reason)} ")
            writer.link(tr("Try again"), picture_link("load", url))


class _Writer:
    """Writes in place of the selection of a cursor. All of it is copied as `source`."""

    def __init__(self, cursor: QTextCursor, source: str, theme: Theme) -> None:
        self._cursor = cursor
        self._source = source
        self._theme = theme
        self._has_begun = False
        cursor.removeSelectedText()

    def text(self, text: str) -> None:
        char_format = self._format()
        char_format.setForeground(QColor(self._theme.tokens.muted))
        self._cursor.insertText(text, char_format)

    def link(self, text: str, target: str) -> None:
        char_format = self._format()
        char_format.setAnchor(True)
        char_format.setAnchorHref(target)
        self._cursor.insertText(text, char_format)

    def picture(self, url: str, pixmap: QPixmap) -> None:
        pictures = DocumentPictures.of(self._cursor.document(), self._theme)
        pictures.add(url, pixmap)
        char_format = self._format()
        char_format.setObjectType(PICTURE_TYPE)
        char_format.setProperty(ADDRESS, url)
        char_format.setAnchor(True)
        char_format.setAnchorHref(picture_link("enlarge", url))
        self._cursor.insertText(OBJECT, char_format)

    def _format(self) -> QTextCharFormat:
        """Return the format of a part. The source is copied once, with the first part."""
        char_format = QTextCharFormat()
        char_format.setProperty(SOURCE, self._source)
        char_format.setProperty(IS_REST, self._has_begun)
        self._has_begun = True
        return char_format


class DocumentPictures(QPyTextObject):
    """The loaded pictures of one document, each at most as wide as its text."""

    def __init__(self, document: QTextDocument, theme: Theme) -> None:
        super().__init__(document)
        self._document = document
        self._hairline = QColor(theme.tokens.hairline)
        self._pixmaps: dict[str, QPixmap] = {}

    @staticmethod
    def of(document: QTextDocument, theme: Theme) -> "DocumentPictures":
        child = document.findChild(DocumentPictures)
        return child if isinstance(child, DocumentPictures) else DocumentPictures(document, theme)

    def add(self, url: str, pixmap: QPixmap) -> None:
        self._pixmaps[url] = pixmap

    def attach(self) -> None:
        """Attach once the text is complete: a document that has a layout lays each change out."""
        block = self._document.begin()
        while block.isValid():
            if _has_picture(block):
                move_lines_apart(QTextCursor(block))
            block = block.next()
        self._document.documentLayout().registerHandler(PICTURE_TYPE, self)

    def intrinsicSize(self, doc: QTextDocument, posInDocument: int, format: QTextFormat) -> QSizeF:
        pixmap = self._pixmaps[str(format.property(ADDRESS))]
        size, room = pixmap.deviceIndependentSize(), self._document.textWidth()
        return QSizeF(room, size.height() * room / size.width()) if 0 < room < size.width() else size

    def drawObject(
        self, painter: QPainter, rect: QRectF | QRect, doc: QTextDocument, posInDocument: int, format: QTextFormat
    ) -> None:
        pixmap = self._pixmaps[str(format.property(ADDRESS))]
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        if pixmap.hasAlphaChannel():
            painter.fillRect(rect, Qt.GlobalColor.white)  # most are made for paper
        painter.drawPixmap(QRectF(rect), pixmap, QRectF(pixmap.rect()))
        painter.setPen(self._hairline)
        painter.drawRect(QRectF(rect).adjusted(0.5, 0.5, -0.5, -0.5))
        painter.restore()


def _has_picture(block: QTextBlock) -> bool:
    return any(fragment.charFormat().objectType() == PICTURE_TYPE for fragment in object_fragments(block))
