"""Summaries of older entries: the entries to summarise, the request, the model call, the stored node."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from string import Template
from typing import Protocol, assert_never

import msgspec

from errand.engine.agent.compaction.token_estimate import TokenEstimate
from errand.engine.agent.history.branch import BranchWriter
from errand.engine.agent.history.conversion import message_of
from errand.engine.agent.history.person_messages import DEFAULT_CHARACTERS, is_order, kept_messages
from errand.engine.agent.history.shortening import shorten
from errand.engine.agent.history.visible_history import ToModelMessages, VisibleHistory, length_of, turn_groups
from errand.engine.agent.prompt.texts import prompt_text
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.messages import (
    AssistantMessage,
    ContextText,
    Image,
    ModelMessage,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    in_tags,
    user_text,
)
from errand.engine.models.base import ChatModel, ModelRequest, ReplyEnd
from errand.protocol.blocks import SummaryBlock
from errand.protocol.conversations import Node

# Characters shown of one text, tried in this order until the whole fits.
_TEXT_LENGTHS = (8_000, 2_000, 500, 120)

_TRIES = 2
_MAX_WORDS = 1_500
_MIN_WORDS = 100
# Share of the window for the record; the rest is for the summary and for estimation errors.
_SHARE = 0.6
# Limit if the context window is unknown.
_MAX_CHARACTERS = 400_000


@dataclass(frozen=True, slots=True)
class SummaryInput:
    """The entries to summarise, and the summary before them.

    `characters` counts what goes: all of it but the person's messages that stay within `person_characters`.
    """

    earlier: SummaryBlock | None
    nodes: tuple[Node, ...]
    characters: int
    person_characters: int


def summary_input(history: VisibleHistory, room: int, person_room: int = DEFAULT_CHARACTERS) -> SummaryInput:
    """Return all but the newest whole steps of about `room` characters; never the last message.

    `person_room` limits the person's messages that stay beside the summary.
    """
    steps = turn_groups(history.rest)
    first, left = len(steps), room
    while first > 0 and (size := length_of(steps[first - 1])) <= left:
        left -= size
        first -= 1
    if steps and first == len(steps) and (steps[-1][0].role == "user" or length_of(steps[-1]) <= 2 * room):
        first -= 1
    older = tuple(node for step in steps[:first] for node in step)
    earlier = len(history.summary.text) if history.summary is not None else 0
    stay = length_of(kept_messages((*history.kept_nodes, *older), person_room).values())
    stayed = length_of(node for node in history.kept_nodes if is_order(node))
    return SummaryInput(history.summary, older, earlier + length_of(older) + stayed - stay, person_room)


def request_for(model: str, earlier: str, nodes: Sequence[Node], room: int, words: int) -> ModelRequest:
    """`room` limits the characters of the record: its texts are shortened, then the oldest entries left out."""
    system = Template(prompt_text("summarise")).substitute(words=words)
    return ModelRequest(model, system, (user_text(record_of(earlier, nodes, room)),), purpose="summary")


def record_of(earlier: str, nodes: Sequence[Node], room: int) -> str:
    messages = [(node, message) for node in nodes if (message := message_of(node)) is not None]
    entries: list[str] = []
    for longest in _TEXT_LENGTHS:
        entries = [_describe(node, message, longest) for node, message in messages]
        if len(earlier) + sum(map(len, entries)) <= room:
            break
    begin, left_out = [f"# Earlier summary\n\n{earlier}"] if earlier else [], 0
    left = room - sum(map(len, begin)) - sum(map(len, entries))
    while left < 0 and left_out < len(entries) - 1:
        left += len(entries[left_out])
        left_out += 1
    if left_out:
        begin.append(f"[{left_out} entries are left out here.]")
    return "\n\n".join((*begin, *entries[left_out:]))


def _describe(node: Node, message: ModelMessage, longest: int) -> str:
    match message.role:
        case "user":
            heading = "# Person" if node.is_from_person else "# App"  # not the user's request
        case "assistant":
            heading = "# Agent"
        case "tool_result":
            assert isinstance(message, ToolResultMessage)
            heading = f"# {'Error' if message.is_error else 'Result'} of {message.tool_name}"
            text = "\n\n".join(_block_text(block, longest) for block in message.content)
            return f"{heading}\n\n{in_tags(text)}"
        case _:
            assert_never(message.role)
    return "\n\n".join((heading, *(text for block in message.content if (text := _block_text(block, longest)))))


def _block_text(block: Text | Image | Thinking | ToolCall, longest: int) -> str:
    match block:
        case ContextText():
            return ""
        case Text(text=text):
            return shorten(text, longest)
        case Image():
            return "[a picture]"
        case Thinking():
            return ""
        case ToolCall():
            arguments = block.invalid or msgspec.json.encode(block.arguments).decode()
            return f"[calls {block.name}: {shorten(arguments, longest)}]"
        case _:
            assert_never(block)


@dataclass(frozen=True, slots=True)
class SummaryFailed:
    """`is_temporary`: a later try may succeed, for instance after a rate limit."""

    why: str
    is_temporary: bool = False


class SummaryCallRecorder(Protocol):
    """Records the model calls of a task; implemented by the recorder of a run."""

    def summary_started(self, request: ModelRequest) -> None:
        """Write the intent of a call that summarises, which is not a turn; the caller awaits the commit."""
        ...

    def refused(self, message: AssistantMessage) -> None:
        """The provider refused the request as too long; a shorter one follows."""
        ...

    def summarised(self, message: AssistantMessage, block: SummaryBlock | None) -> None:
        """The end of a summary call, with the stored node if it succeeded."""
        ...


class Summarizer:
    """Makes summaries for one task. `to_messages` converts branch entries for its agent; `say` shows the activity."""

    def __init__(
        self,
        branch: BranchWriter,
        record: SummaryCallRecorder,
        say: Callable[[str], None],
        model: ChatModel,
        to_messages: ToModelMessages,
    ) -> None:
        self._branch = branch
        self._record = record
        self._say = say
        self._model = model
        self._to_messages = to_messages

    async def make(
        self, older: SummaryInput, model: str, window: int | None, measure: TokenEstimate, cancel: CancelSignal
    ) -> SummaryBlock | SummaryFailed:
        """Return the summary, committed as a node, or the reason why the last of two tries failed."""
        room = _MAX_CHARACTERS if window is None else measure.characters_of(window * _SHARE)
        max_words = min(_MAX_WORDS, max(_MIN_WORDS, (window or 1_000_000) // 40))
        earlier = older.earlier.text if older.earlier is not None else ""
        nodes = self._to_messages(older.nodes)
        tries = _TRIES
        while True:
            tries -= 1
            asked = await asyncio.to_thread(request_for, model, earlier, nodes, room, max_words)
            end = await self._ask(asked, cancel)
            failed = _failure(end, older.characters)
            if failed is None:
                return await self._store(end.message, older, measure)
            self._record.summarised(end.message, None)
            if not tries or cancel.is_set or failed.is_temporary:
                return failed
            room, max_words = room // 2, max_words // 2

    async def _ask(self, request: ModelRequest, cancel: CancelSignal) -> ReplyEnd:
        self._record.summary_started(request)
        self._say("summarising what came before")
        await self._branch.save()
        async with aclosing(self._model.stream(request, cancel)) as events:
            async for event in events:
                if isinstance(event, ReplyEnd):
                    return event
        return ReplyEnd(AssistantMessage(stop_reason="error", error="The model's stream ended without an end."))

    async def _store(self, message: AssistantMessage, older: SummaryInput, measure: TokenEstimate) -> SummaryBlock:
        text = message.text.strip()
        earlier = older.earlier.nodes if older.earlier is not None else 0
        block = SummaryBlock(
            text=text,
            until_id=older.nodes[-1].id,
            nodes=earlier + sum(node.role != "system" for node in older.nodes),
            tokens_before=measure.tokens_of(older.characters),
            tokens_after=measure.tokens_of(len(text)),
            person_characters=older.person_characters,
        )
        self._record.summarised(message, block)
        await self._branch.save()
        return block


def _failure(end: ReplyEnd, characters: int) -> SummaryFailed | None:
    message = end.message
    if message.stop_reason in ("error", "aborted"):
        return SummaryFailed(message.error or "The call failed.", is_temporary=end.retry_later is not None)
    if not message.text.strip():
        return SummaryFailed("The model gave no text.")
    if message.stop_reason == "length":
        return SummaryFailed("The model did not come to its end.")
    return SummaryFailed("It is not much shorter.") if len(message.text) > characters // 2 else None
