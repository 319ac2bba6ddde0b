"""What of a branch is sent to the model: newest summary, pinned entries, and all that follows.

Whether it fits is compaction's.
"""

import asyncio
from collections.abc import Callable, Collection, Container, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from app.engine.agent.history.conversion import message_of, messages_of
from app.engine.agent.prompt.texts import prompt_text
from app.engine.core.messages import ModelMessage, Text, UserMessage, user_text
from app.engine.models.reply.usage import characters_of
from app.engine.storage.records.nodes import NodeStore
from app.protocol.blocks import SummaryBlock
from app.protocol.conversations import Node

# Entries as the agent hears them that reads: `Company.heard`, or `tuple` where all is its own.
ToModelMessages: TypeAlias = Callable[[Sequence[Node]], tuple[Node, ...]]

# Entries that are converted in a few milliseconds.
_LONG = 500


@dataclass(frozen=True, slots=True)
class SummaryMessage(UserMessage):
    """A summary as a model reads it; of the messages after it the first `kept` are older ones that were kept."""

    kept: int = 0


@dataclass(frozen=True, slots=True)
class VisibleHistory:
    """`kept` and `rest` are entries in the order of the branch; without a summary all of them are `rest`.

    `is_cut` says that some of the rest are left out.
    """

    summary: SummaryBlock | None
    kept: tuple[Node, ...]
    rest: tuple[Node, ...]
    is_cut: bool = False

    def messages(self, heard: ToModelMessages) -> tuple[ModelMessage, ...]:
        told = (user_text(prompt_text("left_out")),) if self.is_cut else ()
        rest = (*told, *messages_of(heard(self.rest)))
        if self.summary is None:
            return rest
        kept = messages_of(heard(self.kept))
        said = Text(f"{prompt_text('summarised')}\n\n{self.summary.text}")
        return (SummaryMessage((said,), kept=len(kept)), *kept, *rest)


async def recent_path(nodes: NodeStore, leaf_id: str | None, kept: Collection[str]) -> tuple[Node, ...]:
    """The end of a branch, as much as a model may read. Of what stands before that: what a person keeps in, and the
    entry up to which the newest summary goes.
    """
    recent = await nodes.recent(leaf_id) if leaf_id is not None else ()
    if not recent or recent[0].parent_id is None:
        return recent
    ids = {node.id for node in recent}
    summary = next((found for node in reversed(recent) if (found := summary_of(node)) is not None), None)
    wanted = {*kept, *((summary.until_id,) if summary is not None else ())} - ids
    older = await nodes.on_path(recent[0].parent_id, wanted)
    # A result without its call says nothing.
    first = next((at for at, node in enumerate(recent) if node.role in ("user", "assistant")), 0)
    return (*older, *recent[first:])


def visible_history(path: Sequence[Node], kept: Collection[str] = ()) -> VisibleHistory:
    """`kept` are the ids of entries that stay in. A summary of what is not on the path says nothing about it.

    A path is cut where an entry follows one that is not there.
    """
    places = {node.id: place for place, node in enumerate(path)}
    plain = [node for node in path if summary_of(node) is None]
    for node in reversed(path):
        summary = summary_of(node)
        until = places.get(summary.until_id) if summary is not None else None
        if summary is not None and until is not None and until < places[node.id]:
            before = [node for node in plain if places[node.id] <= until]
            after = tuple(node for node in plain if places[node.id] > until)
            return VisibleHistory(summary, _kept_steps(before, kept), after, _has_gap(after, places))
    return VisibleHistory(None, (), tuple(plain), _has_gap(plain, places))


def _has_gap(nodes: Iterable[Node], ids: Container[str]) -> bool:
    return any(node.parent_id is not None and node.parent_id not in ids for node in nodes)


async def branch_messages(
    path: Sequence[Node], kept: Collection[str], heard: ToModelMessages
) -> tuple[ModelMessage, ...]:
    """The same as `visible_messages`; of a long branch without a stop of the event loop."""
    if len(path) <= _LONG:
        return visible_messages(path, kept, heard)
    return await asyncio.to_thread(visible_messages, path, kept, heard)


def visible_messages(path: Sequence[Node], kept: Collection[str], heard: ToModelMessages) -> tuple[ModelMessage, ...]:
    """A branch as the messages that a model is sent."""
    return visible_history(path, kept).messages(heard)


def summary_of(node: Node) -> SummaryBlock | None:
    """The summary that a node is, if it is one."""
    return next((block for block in node.blocks if isinstance(block, SummaryBlock)), None)


def turn_groups(nodes: Iterable[Node]) -> list[tuple[Node, ...]]:
    """What cannot be parted: a reply with the results of its calls, or what somebody said."""
    steps: list[list[Node]] = []
    for node in nodes:
        if steps and node.role in ("tool_result", "system"):
            steps[-1].append(node)
        else:
            steps.append([node])
    return [tuple(step) for step in steps]


def _kept_steps(before: Iterable[Node], kept: Collection[str]) -> tuple[Node, ...]:
    return tuple(node for step in turn_groups(before) if any(node.id in kept for node in step) for node in step)


def length_of(nodes: Iterable[Node]) -> int:
    """How many characters a model reads of these."""
    messages = (message_of(node) for node in nodes)
    return sum(characters_of(message) for message in messages if message is not None)


def shorten(said: str, longest: int) -> str:
    """Its beginning and its end, which say most: what was run, and how it came out."""
    if len(said) <= longest:
        return said
    begin, end = longest * 2 // 3, longest // 3
    return f"{said[:begin]}\n[… {len(said) - begin - end:,} characters left out …]\n{said[-end:]}"
