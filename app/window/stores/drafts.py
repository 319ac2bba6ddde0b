"""What was typed in blocks and not sent: a block that scrolls out of view is given to another row."""


class Drafts:
    """By the id of the ask or message that the text is for."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def get(self, key: str, otherwise: str = "") -> str:
        return self._texts.get(key, otherwise)

    def put(self, key: str, text: str) -> None:
        self._texts[key] = text

    def drop(self, key: str) -> None:
        self._texts.pop(key, None)
