"""Pictures on the web that a person has loaded: kept while the conversation is open, up to a size."""

from collections import OrderedDict

from PySide6.QtCore import QObject, Signal, SignalInstance

from errand.protocol.pictures import PICTURE_LOAD, PictureLoadParams
from errand.window.rows.markup.web_pictures import WebPicture
from errand.window.stores.session import EngineSession

_MAX_CHARACTERS = 40_000_000  # of base64


class PictureStore(QObject):
    """Emits `changed` with the address of a picture. The oldest ones are forgotten, and can be loaded again."""

    _changed = Signal(str)

    def __init__(self, session: EngineSession) -> None:
        super().__init__()
        self._session = session
        self._pictures: OrderedDict[str, WebPicture] = OrderedDict()

    @property
    def changed(self) -> SignalInstance:
        return self._changed

    def picture(self, url: str) -> WebPicture:
        return self._pictures.get(url, WebPicture())

    def load(self, url: str, *, is_private_allowed: bool = False) -> None:
        """Load a picture unless that is under way; of the local network only the host that is shown, if allowed."""
        picture = self.picture(url)
        if picture.status in ("loading", "loaded"):
            return
        allowed = picture.reason if is_private_allowed and picture.status == "private" else ""
        self._put(url, WebPicture("loading"))
        params = PictureLoadParams(url=url, allowed_host=allowed)
        self._session.spawn(self._load(params), lambda reason: self._put(url, WebPicture("failed", reason=reason)))

    async def _load(self, params: PictureLoadParams) -> None:
        result = await self._session.call(PICTURE_LOAD, params)
        if result.image is not None:
            self._put(params.url, WebPicture("loaded", result.image))
        else:
            self._put(params.url, WebPicture("private", reason=result.private_host))

    def _put(self, url: str, picture: WebPicture) -> None:
        self._pictures[url] = picture
        self._pictures.move_to_end(url)
        characters = sum(len(each.image.data) for each in self._pictures.values() if each.image is not None)
        for old, loaded in list(self._pictures.items()):
            if characters <= _MAX_CHARACTERS or old == url:
                break
            if loaded.image is not None:
                characters -= len(loaded.image.data)
                del self._pictures[old]
        self._changed.emit(url)
