"""Tells reasoning in `<think>` tags from text, in pieces cut anywhere. Blocks and events are the assembly's.

Tags count only where models put their reasoning: at the very beginning, or right after another such block. A
`<think>` later on is text that speaks about tags.
"""

from typing import Literal, TypeAlias

_OPEN = "<think>"
_CLOSE = "</think>"
# Blank space that is held back where a tag may follow; a reply that begins with more begins with text.
_MOST_BLANK = 1_000
_STRIDE = 4_096  # of a large delta, so that what is cut anew for each tag stays small

Piece: TypeAlias = tuple[Literal["text", "thinking"], str]


class ThinkTags:
    """Feed it text deltas; it gives back pieces with their kind. `finish` gives what was held back."""

    def __init__(self) -> None:
        self._state: Literal["before", "inside", "text"] = "before"
        self._held = ""
        self._started = False  # something of the present thinking block was given out
        self._after = False  # a thinking block went before: blank space that follows it is not text

    @property
    def holds_text(self) -> bool:
        return bool(self._held.strip())

    def feed(self, delta: str) -> list[Piece]:
        pieces: list[Piece] = []
        for at in range(0, len(delta), _STRIDE):
            if self._state == "text":
                return [*pieces, ("text", delta[at:])]
            self._held += delta[at : at + _STRIDE]
            while self._held and self._step(pieces):
                pass
        return pieces

    def finish(self) -> list[Piece]:
        held, self._held = self._held, ""
        kind: Literal["text", "thinking"] = "thinking" if self._state == "inside" else "text"
        self._state = "text"
        return [(kind, held)] if held.strip() else []

    def _step(self, pieces: list[Piece]) -> bool:
        """Take what can be told from the held text; False when more must come first."""
        if self._state == "text":
            pieces.append(("text", self._held))
            self._held = ""
            return False
        return self._before(pieces) if self._state == "before" else self._inside(pieces)

    def _before(self, pieces: list[Piece]) -> bool:
        word = self._held.lstrip()
        if word.startswith(_OPEN):
            self._state, self._started, self._held = "inside", False, word[len(_OPEN) :]
            return True
        if _OPEN.startswith(word) and len(self._held) <= _MOST_BLANK:
            return False
        self._state = "text"
        if self._after:
            self._held = word
        return True

    def _inside(self, pieces: list[Piece]) -> bool:
        thought, tag, rest = self._held.partition(_CLOSE)
        if not tag:
            keep = _overlap(thought)
            thought, rest = thought[: len(thought) - keep], thought[len(thought) - keep :]
        if not self._started:
            thought = thought.lstrip()
        if thought:
            self._started = True
            pieces.append(("thinking", thought))
        self._held = rest
        if not tag:
            return False
        self._state, self._after = "before", True
        return True


def _overlap(text: str) -> int:
    """How many characters at the end of `text` may be the beginning of the closing tag."""
    for size in range(min(len(_CLOSE) - 1, len(text)), 0, -1):
        if _CLOSE.startswith(text[-size:]):
            return size
    return 0
