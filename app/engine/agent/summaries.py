"""Makes a summary: a call of the task's own model, on record and counted like a turn, and a node that keeps it."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from app.engine.agent.branch import Branch
from app.engine.agent.measure import Measure
from app.engine.agent.reach import Hearing
from app.engine.agent.summary import Older, request_for
from app.engine.cancel import CancelSignal
from app.engine.messages import AssistantMessage
from app.engine.models.base import ChatModel, ModelRequest, ReplyEnd
from app.protocol.blocks import SummaryBlock

_TRIES = 2
_MOST_WORDS = 1_500
_FEWEST_WORDS = 100
# The record may fill this much of the window; the rest is for the summary and for what was estimated too low.
_SHARE = 0.6
# Where the window is not known.
_MOST_CHARACTERS = 400_000


@dataclass(frozen=True, slots=True)
class Failed:
    """`passes` says that a later try may do better: a limit of the provider, say."""

    why: str
    passes: bool = False


class CallRecord(Protocol):
    """Records the model calls of a task; the recorder of a run does."""

    def turn_started(self, request: ModelRequest) -> None:
        """Put the intent of a model call and how much it sends; the caller waits for it to be committed."""
        ...

    def refused(self, message: AssistantMessage) -> None:
        """The provider did not take the request, and a shorter one is made."""
        ...

    def summarised(self, message: AssistantMessage, block: SummaryBlock | None) -> None:
        """The end of a call for a summary, with the node that keeps it if there is one."""
        ...


class Summaries:
    """Of one task. `heard` is how its agent hears the entries of a branch; `say` shows what the task is doing."""

    def __init__(
        self, branch: Branch, record: CallRecord, say: Callable[[str], None], model: ChatModel, heard: Hearing
    ) -> None:
        self._branch = branch
        self._record = record
        self._say = say
        self._model = model
        self._heard = heard

    async def make(
        self, older: Older, model: str, window: int | None, measure: Measure, cancel: CancelSignal
    ) -> SummaryBlock | Failed:
        """The summary, committed as a node, or what is wrong with the last of two tries."""
        room = _MOST_CHARACTERS if window is None else measure.characters_of(window * _SHARE)
        words = min(_MOST_WORDS, max(_FEWEST_WORDS, (window or 1_000_000) // 40))
        earlier = older.earlier.text if older.earlier is not None else ""
        nodes = self._heard(older.nodes)
        tries = _TRIES
        while True:
            tries -= 1
            asked = await asyncio.to_thread(request_for, model, earlier, nodes, room, words)
            end = await self._ask(asked, cancel)
            failed = _wrong(end, older.characters)
            if failed is None:
                return await self._keep(end.message, older, measure)
            self._record.summarised(end.message, None)
            if not tries or cancel.is_set or failed.passes:
                return failed
            room, words = room // 2, words // 2

    async def _ask(self, request: ModelRequest, cancel: CancelSignal) -> ReplyEnd:
        self._record.turn_started(request)
        self._say("summarising what came before")
        await self._branch.save()
        async with aclosing(self._model.stream(request, cancel)) as events:
            async for event in events:
                if isinstance(event, ReplyEnd):
                    return event
        return ReplyEnd(AssistantMessage(stop_reason="error", error="The model's stream ended without an end."))

    async def _keep(self, message: AssistantMessage, older: Older, measure: Measure) -> SummaryBlock:
        said = message.text.strip()
        earlier = older.earlier.nodes if older.earlier is not None else 0
        block = SummaryBlock(
            text=said,
            until_id=older.nodes[-1].id,
            nodes=earlier + sum(node.role != "system" for node in older.nodes),
            tokens_before=measure.tokens_of(older.characters),
            tokens_after=measure.tokens_of(len(said)),
        )
        self._record.summarised(message, block)
        await self._branch.save()
        return block


def _wrong(end: ReplyEnd, characters: int) -> Failed | None:
    message = end.message
    if message.stop_reason in ("error", "aborted"):
        return Failed(message.error or "The call failed.", passes=end.later is not None)
    if not message.text.strip():
        return Failed("The model gave no text.")
    if message.stop_reason == "length":
        return Failed("The model did not come to its end.")
    return Failed("It is not much shorter.") if len(message.text) > characters // 2 else None
