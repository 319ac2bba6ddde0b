"""The pictures of a piece of Markdown: decoded in a thread, loaded and enlarged by a click."""

from functools import partial

from PySide6.QtCore import QObject, QSize, Signal
from PySide6.QtGui import QImage, QPixmap, QPixmapCache
from PySide6.QtWidgets import QWidget

from errand.protocol.blocks import ImageBlock
from errand.text.translation import tr
from errand.window.rows.base import RowActions
from errand.window.rows.markup.pictures import MAX_HEIGHT
from errand.window.rows.markup.web_pictures import WebPicture, parse_picture_link
from errand.window.theme.theme import Theme
from errand.window.widgets.picture_viewer import PictureViewer
from errand.window.widgets.pictures import PictureLoader


class MarkdownPictures(QObject):
    """Emits `changed` when a picture of the piece has another state, or was decoded."""

    changed = Signal()

    def __init__(self, theme: Theme, actions: RowActions, owner: QWidget) -> None:
        super().__init__(owner)
        self._theme = theme
        self._actions = actions
        self._owner = owner
        self._addresses: set[str] = set()
        self._decoded: dict[str, QPixmap] = {}  # of the shown text, and of the one before
        self._loaders: dict[str, PictureLoader] = {}
        self._unreadable: set[str] = set()
        actions.pictures.changed.connect(self._on_changed)

    def clear(self) -> None:
        """Another text is shown, or the same one again."""
        self._decoded = {url: pixmap for url, pixmap in self._decoded.items() if url in self._addresses}
        self._addresses.clear()

    def find(self, url: str) -> tuple[WebPicture, QPixmap | None]:
        """Return the state of a picture of the text, and the picture if it is decoded; otherwise that is begun."""
        self._addresses.add(url)
        picture = self._actions.pictures.picture(url)
        if picture.image is None:
            return picture, None
        if url in self._unreadable:
            return WebPicture("failed", reason=tr("This picture cannot be shown.")), None
        pixmap = self._decoded.get(url) or QPixmap()
        if not pixmap.isNull() or QPixmapCache.find(self._key(picture.image), pixmap):
            return picture, pixmap
        self._decode(url, picture.image)
        return picture, None

    def open_link(self, link: str) -> bool:
        """Load or enlarge a picture; False for any other link."""
        parsed = parse_picture_link(link)
        if parsed is None:
            return False
        action, url = parsed
        image = self._actions.pictures.picture(url).image
        if action != "enlarge":
            self._unreadable.discard(url)
            self._actions.pictures.load(url, is_private_allowed=action == "load_private")
        elif image is not None:
            PictureViewer(image, self._theme, self._actions.copy_picture, self._owner.window()).open()
        return True

    def _decode(self, url: str, image: ImageBlock) -> None:
        if url in self._loaders:
            return
        loader = self._loaders[url] = PictureLoader(self)
        loader.loaded.connect(partial(self._on_decoded, url, image))
        ratio = self._owner.devicePixelRatioF()
        loader.load(image, QSize(self._theme.tokens.column, MAX_HEIGHT) * ratio)

    def _on_decoded(self, url: str, image: ImageBlock, decoded: QImage) -> None:
        self._loaders.pop(url).deleteLater()
        if decoded.isNull():
            self._unreadable.add(url)
        else:
            decoded.setDevicePixelRatio(self._owner.devicePixelRatioF())
            self._decoded[url] = QPixmap.fromImage(decoded)
            QPixmapCache.insert(self._key(image), self._decoded[url])  # a very large one does not fit
        if url in self._addresses:
            self.changed.emit()

    def _on_changed(self, url: str) -> None:
        if url in self._addresses:
            self.changed.emit()

    def _key(self, image: ImageBlock) -> str:
        return f"web {hash(image.data)} {self._theme.tokens.column} {self._owner.devicePixelRatioF()}"
