"""The texts of replies as far as deltas have brought them."""

from typing import Literal, TypeAlias

from errand.protocol.events import TextDelta

DeltaEffect: TypeAlias = Literal["begins", "continues", "restarts"]


class StreamedTexts:
    """Texts and thoughts by node and block."""

    def __init__(self) -> None:
        self._texts: dict[tuple[str, int], str] = {}

    def add(self, delta: TextDelta) -> DeltaEffect | None:
        """Add text; None if a delta before it was missed: the finished node has the rest.

        A block that restarts voids the later blocks too.
        """
        key = (delta.node_id, delta.block)
        before = self._texts.get(key, "")
        if delta.offset == 0 and before:
            self._texts = {at: text for at, text in self._texts.items() if at[0] != key[0] or at[1] < key[1]}
            self._texts[key] = delta.text
            return "restarts"
        if delta.offset != len(before):
            return None
        self._texts[key] = before + delta.text
        return "continues" if before else "begins"

    def text(self, node_id: str, block: int) -> str:
        return self._texts.get((node_id, block), "")

    def take(self, node_id: str, block: int) -> str:
        """Return the text of a block and forget it, since the finished node has come."""
        return self._texts.pop((node_id, block), "")

    def has_any(self, node_id: str) -> bool:
        return any(at[0] == node_id for at in self._texts)
