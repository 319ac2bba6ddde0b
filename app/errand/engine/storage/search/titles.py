"""Search over conversation titles."""

from typing import Protocol

from errand.protocol.conversations import Conversation


class TitleSearch(Protocol):
    async def find(self, text: str, limit: int = 20) -> tuple[Conversation, ...]:
        """Conversations whose title contains all words of `text`, newest first, also archived.

        The last word may be incomplete.
        """
        ...
