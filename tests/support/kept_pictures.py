"""Pictures on the web for row views, without an engine."""

from PySide6.QtCore import QObject, Signal, SignalInstance

from errand.window.rows.markup.web_pictures import WebPicture


class KeptPictures(QObject):
    """Records what is loaded, with whether the local network is allowed; `put` is the answer."""

    _changed = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[tuple[str, bool]] = []
        self._known: dict[str, WebPicture] = {}

    @property
    def changed(self) -> SignalInstance:
        return self._changed

    def picture(self, url: str) -> WebPicture:
        return self._known.get(url, WebPicture())

    def load(self, url: str, *, is_private_allowed: bool = False) -> None:
        self.loads.append((url, is_private_allowed))
        self.put(url, WebPicture("loading"))

    def put(self, url: str, picture: WebPicture) -> None:
        self._known[url] = picture
        self._changed.emit(url)
