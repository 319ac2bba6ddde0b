"""What a person has before their eyes, set by a test."""


class Eyes:
    """Not on a window of ours until `look_at`."""

    def __init__(self) -> None:
        self._conversation = ""
        self._on_us = False

    def look_at(self, conversation_id: str) -> None:
        self._conversation, self._on_us = conversation_id, True

    def look_away(self) -> None:
        self._conversation, self._on_us = "", False

    def conversation(self) -> str:
        return self._conversation

    def on_us(self) -> bool:
        return self._on_us
