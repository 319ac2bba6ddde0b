"""What a turn was sent, by part and size."""

from typing import Literal

from app.protocol.struct import Wire

ContextPart = Literal["system", "tools", "summary", "kept", "history", "results", "memory"]


class ContextExplainParams(Wire, frozen=True, kw_only=True):
    """Turn `turn` of a task, or the newest one whose input was counted."""

    task_id: str
    turn: int | None = None


class ContextShare(Wire, frozen=True, kw_only=True):
    """`tokens` is this part's share of the turn's input: the provider counted the whole, characters divide it.

    A picture counts as 6,000 characters. `items` are messages, tools or results.
    """

    part: ContextPart
    tokens: int
    items: int


class ContextExplainResult(Wire, frozen=True, kw_only=True):
    """`used_tokens` is what the provider counted for the turn, 0 before the first reply.

    `window_tokens` is null where the model's window is not known. Parts that are empty are left out; there are none for
    turns of versions that did not note them.
    """

    task_id: str
    turn: int
    model: str
    used_tokens: int
    window_tokens: int | None
    shares: tuple[ContextShare, ...]
