"""The content of a streaming reply: grows in linear time, within the limits of a reply."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import msgspec

from errand.engine.core.messages import AssistantContent, AssistantMessage, Text, Thinking, ToolCall
from errand.engine.models.reply.repetition import RepetitionWatch
from errand.protocol.base import JsonValue

_REPEATS = "repeats the same text again and again"
# Pieces of a few characters are joined in runs of this many: a string object takes twelve times the memory of such a
# piece.
_RUN = 256


# A JSON object, parts of which may be encoded already.
PartlyEncoded: TypeAlias = Mapping[str, JsonValue | msgspec.Raw]


def encode(value: JsonValue | PartlyEncoded) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # lone surrogates, such as file names that are not UTF-8
        return json.dumps(value, ensure_ascii=False, default=msgspec.json.decode).encode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class ReplyLimits:
    """The limits of one reply, in characters. The longest real replies have about 600,000 (128,000 tokens).

    `call_arguments` applies to one call, `arguments` to all. `blocks` counts texts, thoughts and calls. `stream_bytes`
    limits the received bytes, `seconds` the duration. `repeated` is the length of a text or a thought that is the same
    piece again and again, `repeated_arguments` that of a call's arguments: data may be like that, so None allows any.
    """

    text: int = 1_000_000
    thinking: int = 1_000_000
    call_arguments: int = 1_000_000
    arguments: int = 1_500_000
    calls: int = 128
    blocks: int = 1_000
    stream_bytes: int = 256 * 1024 * 1024
    seconds: float = 3_600.0
    repeated: int = 50_000
    repeated_arguments: int | None = None


REPLY_LIMITS = ReplyLimits()
# Of a small model, for which so much is minutes.
_SMALL_REPEATED = 4_000


def reply_limits(limits: ReplyLimits, *, is_small: bool) -> ReplyLimits:
    """Return the limits for replies of a model, which is small or not."""
    if not is_small:
        return limits
    return replace(limits, repeated=min(limits.repeated, _SMALL_REPEATED), repeated_arguments=_SMALL_REPEATED)


class ReplyTooLong(Exception):
    """The reply exceeds a limit. The message names it and follows "the reply was cut because it …"."""


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """The reply as of one event. Its text is joined on access, since a reply has many thousand events.

    An unfinished thought has no signature yet.
    """

    finished: tuple[AssistantContent, ...]
    open: "GrowingText | None" = None
    runs: int = 0
    pieces: "list[str]" = field(default_factory=list[str])
    count: int = 0

    @property
    def content(self) -> tuple[AssistantContent, ...]:
        if self.open is None:
            return self.finished
        text = "".join((*self.open.runs[: self.runs], *self.pieces[: self.count]))
        return (*self.finished, Thinking(text) if self.open.is_thinking else Text(text))

    @property
    def text(self) -> str:
        return AssistantMessage(self.content).text


class GrowingText:
    """Text in pieces. Lists only grow or are replaced, so a snapshot of their lengths stays valid."""

    __slots__ = ("is_thinking", "length", "pieces", "runs", "signatures")

    def __init__(self, *, is_thinking: bool = False) -> None:
        self.is_thinking = is_thinking
        self.length = 0
        self.signatures: list[str] = []
        self.runs: list[str] = []
        self.pieces: list[str] = []

    @property
    def joined(self) -> str:
        return "".join((*self.runs, *self.pieces))

    def add(self, piece: str) -> None:
        self.length += len(piece)
        self.pieces.append(piece)
        if len(self.pieces) >= _RUN:
            self.runs.append("".join(self.pieces))
            self.pieces = []

    def block(self) -> Text | Thinking:
        return Thinking(self.joined, "".join(self.signatures)) if self.is_thinking else Text(self.joined)


class ReplyContent:
    """Blocks in order; the last one may be an unfinished text or thought. Raises `ReplyTooLong`."""

    def __init__(self, limits: ReplyLimits = REPLY_LIMITS) -> None:
        self.limits = limits
        self._finished: list[AssistantContent] = []
        self._snapshot_of: tuple[AssistantContent, ...] | None = None
        self._open: GrowingText | None = None
        self._calls: dict[int, GrowingText] = {}
        self._watch = RepetitionWatch(limits.repeated)
        self._call_watches: dict[int, RepetitionWatch] = {}
        self._text = self._thinking = self._arguments = 0

    def __len__(self) -> int:
        return len(self._finished) + (self._open is not None)

    @property
    def partial(self) -> _Snapshot:
        """The content so far, as an immutable `PartialReply`."""
        if self._snapshot_of is None:
            self._snapshot_of = tuple(self._finished)
        grown = self._open
        if grown is None:
            return _Snapshot(self._snapshot_of)
        return _Snapshot(self._snapshot_of, grown, len(grown.runs), grown.pieces, len(grown.pieces))

    @property
    def blocks(self) -> tuple[AssistantContent, ...]:
        return self.partial.content

    @property
    def has_calls(self) -> bool:
        return bool(self._calls)

    @property
    def is_thinking(self) -> bool | None:
        """True if the unfinished block is a thought; None if there is none."""
        return None if self._open is None else self._open.is_thinking

    def begin(self, *, is_thinking: bool) -> int:
        """Open a text or a thought; returns its index."""
        self.close()
        self._check_blocks()
        self._open = GrowingText(is_thinking=is_thinking)
        self._watch = RepetitionWatch(self.limits.repeated)
        return len(self._finished)

    def grow(self, delta: str, signature: str = "") -> None:
        """Append to the open block."""
        assert self._open is not None, "a block was begun"
        if self._open.is_thinking:
            self._thinking = _counted(
                self._thinking, len(delta) + len(signature), self.limits.thinking, "characters of thinking"
            )
            self._open.signatures.append(signature)
        else:
            self._text = _counted(self._text, len(delta), self.limits.text, "characters of text")
        repeats = self._watch.repeats(delta)
        self._open.add(delta[: self.limits.repeated] if repeats else delta)
        if repeats:
            raise ReplyTooLong(_REPEATS)

    def close(self) -> int | None:
        """Close the open block; returns its index, None if there is none."""
        if self._open is None:
            return None
        self._finished.append(self._open.block())
        self._open = self._snapshot_of = None
        return len(self._finished) - 1

    def sign(self, index: int, signature: str) -> None:
        """Set the signature of a thought."""
        if self._open is not None and index == len(self._finished):
            self.close()
        block = self._finished[index]
        assert isinstance(block, Thinking)
        self._thinking = _counted(self._thinking, len(signature), self.limits.thinking, "characters of thinking")
        self.replace(index, Thinking(block.text, signature))

    def begin_call(self, call: ToolCall) -> int:
        """Add a call without arguments yet; returns its index."""
        self.close()
        self._check_blocks()
        if len(self._calls) >= self.limits.calls:
            raise ReplyTooLong(f"has more than {self.limits.calls:,} tool calls")
        self._count_arguments(len(call.id) + len(call.name))
        self._finished.append(call)
        self._snapshot_of = None
        self._calls[len(self._finished) - 1] = GrowingText()
        if self.limits.repeated_arguments is not None:
            self._call_watches[len(self._finished) - 1] = RepetitionWatch(self.limits.repeated_arguments)
        return len(self._finished) - 1

    def grow_call(self, index: int, arguments: str) -> None:
        """Append to a call's raw arguments."""
        raw = self._calls[index]
        limit = self.limits.call_arguments
        if raw.length + len(arguments) > limit:
            raise ReplyTooLong(f"has a tool call with more than {limit:,} characters of arguments")
        self._count_arguments(len(arguments))
        watch = self._call_watches.get(index)
        if watch is not None and watch.repeats(arguments):
            raise ReplyTooLong(_REPEATS)
        raw.add(arguments)

    def arguments_of(self, index: int) -> GrowingText:
        return self._calls[index]

    def replace(self, index: int, block: AssistantContent) -> None:
        """Replace a finished block, such as a call by the same call with its arguments."""
        self._finished[index] = block
        self._snapshot_of = None

    def add(self, block: AssistantContent) -> None:
        """Add a complete block."""
        if isinstance(block, ToolCall):
            index = self.begin_call(ToolCall(block.id, block.name, {}))
            self.grow_call(index, block.invalid or encode(block.arguments).decode())
            self.replace(index, block)
            return
        self.begin(is_thinking=isinstance(block, Thinking))
        self.grow(block.text, block.signature if isinstance(block, Thinking) else "")
        self.close()

    def end_cut(self, reason: str) -> tuple[AssistantContent, ...]:
        """Return the blocks of a reply that was cut here. If no tool results will inform the model, its text does."""
        self.close()
        if not self._calls:
            self._finished.append(Text(f"\n\n[The reply was cut here by the app: it {reason}.]"))
            self._snapshot_of = None
        return self.blocks

    def at(self, index: int) -> AssistantContent | None:
        """Return the current block, without the text of an unfinished one; None if there is none."""
        if self._open is not None and index == len(self._finished):
            return Thinking("") if self._open.is_thinking else Text("")
        return self._finished[index] if 0 <= index < len(self._finished) else None

    def _check_blocks(self) -> None:
        if len(self._finished) >= self.limits.blocks:
            raise ReplyTooLong(f"has more than {self.limits.blocks:,} parts")

    def _count_arguments(self, more: int) -> None:
        self._arguments = _counted(
            self._arguments, more, self.limits.arguments, "characters of arguments in its tool calls"
        )


def _counted(so_far: int, more: int, limit: int, what: str) -> int:
    if so_far + more > limit:
        raise ReplyTooLong(f"has more than {limit:,} {what}")
    return so_far + more
