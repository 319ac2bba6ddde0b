"""The part of a branch that is sent to the model: newest summary, kept entries, and everything after the summary.

Fitting it into the context window belongs to compaction.
"""

import asyncio
from collections.abc import Callable, Collection, Container, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from errand.engine.agent.history.conversion import message_of, messages_of
from errand.engine.agent.history.person_messages import DEFAULT_CHARACTERS, MAX_MESSAGES, kept_messages
from errand.engine.agent.prompt.texts import prompt_text
from errand.engine.core.messages import ModelMessage, Text, UserMessage, user_text
from errand.engine.models.reply.usage import characters_of
from errand.engine.storage.records.nodes import NodeStore
from errand.protocol.blocks import Block, EnvironmentBlock, SummaryBlock, TextBlock
from errand.protocol.conversations import Node

# Converts entries for the reading agent: `Participants.as_messages`, or `tuple` if all are its own.
ToModelMessages: TypeAlias = Callable[[Sequence[Node]], tuple[Node, ...]]

# Number of entries that convert within a few milliseconds.
_LONG = 500


@dataclass(frozen=True, slots=True)
class SummaryMessage(UserMessage):
    """A summary as a model message; `kept_count`: number of messages after it that are older, kept entries."""

    kept_count: int = 0


@dataclass(frozen=True, slots=True)
class VisibleHistory:
    """`kept_nodes` and `rest` are entries in branch order; without a summary all of them are in `rest`.

    `kept_nodes` are the older messages of the person too, and what said last whether the agent only plans. `is_cut`:
    some of `rest` are left out.
    """

    summary: SummaryBlock | None
    kept_nodes: tuple[Node, ...]
    rest: tuple[Node, ...]
    is_cut: bool = False

    def messages(self, to_messages: ToModelMessages) -> tuple[ModelMessage, ...]:
        notice = (user_text(prompt_text("left_out")),) if self.is_cut else ()
        rest = (*notice, *messages_of(to_messages(self.rest)))
        if self.summary is None:
            return rest
        originals = messages_of(to_messages(self.kept_nodes))
        summary = Text(f"{prompt_text('summarised')}\n\n{self.summary.text}")
        return (SummaryMessage((summary,), kept_count=len(originals)), *originals, *rest)


async def recent_path(nodes: NodeStore, leaf_id: str | None, kept: Collection[str]) -> tuple[Node, ...]:
    """Return the end of a branch, as much as a model may read.

    From before that, it includes kept entries, messages of the person, and the last entry covered by the newest
    summary.
    """
    recent = await nodes.recent(leaf_id) if leaf_id is not None else ()
    if not recent or recent[0].parent_id is None:
        return recent
    ids = {node.id for node in recent}
    summary = next((block for node in reversed(recent) if (block := summary_of(node)) is not None), None)
    messages = await nodes.user_messages(recent[0].parent_id, MAX_MESSAGES)
    needed_ids = {*kept, *messages, *((summary.until_id,) if summary is not None else ())} - ids
    older = await nodes.on_path(recent[0].parent_id, needed_ids)
    # A result without its call is meaningless.
    first = next((at for at, node in enumerate(recent) if node.role in ("user", "assistant")), 0)
    return (*older, *recent[first:])


def visible_history(path: Sequence[Node], kept: Collection[str] = ()) -> VisibleHistory:
    """`kept` are ids of entries to keep. Ignores a summary whose last covered entry is not on the path.

    `is_cut` is set if an entry's parent is missing from the path.
    """
    positions = {node.id: position for position, node in enumerate(path)}
    plain = [node for node in path if summary_of(node) is None]
    for node in reversed(path):
        summary = summary_of(node)
        until = positions.get(summary.until_id) if summary is not None else None
        if summary is not None and until is not None and until < positions[node.id]:
            before = [node for node in plain if positions[node.id] <= until]
            after = tuple(node for node in plain if positions[node.id] > until)
            room = summary.person_characters or DEFAULT_CHARACTERS
            return VisibleHistory(summary, _kept_entries(before, kept, room), after, _has_gap(after, positions))
    return VisibleHistory(None, (), tuple(plain), _has_gap(plain, positions))


def _has_gap(nodes: Iterable[Node], ids: Container[str]) -> bool:
    return any(node.parent_id is not None and node.parent_id not in ids for node in nodes)


async def branch_messages(
    path: Sequence[Node], kept: Collection[str], to_messages: ToModelMessages
) -> tuple[ModelMessage, ...]:
    """Same as `visible_messages`, but converts a long branch in a thread."""
    if len(path) <= _LONG:
        return visible_messages(path, kept, to_messages)
    return await asyncio.to_thread(visible_messages, path, kept, to_messages)


def visible_messages(
    path: Sequence[Node], kept: Collection[str], to_messages: ToModelMessages
) -> tuple[ModelMessage, ...]:
    """Return a branch as the messages for a model."""
    return visible_history(path, kept).messages(to_messages)


def environment_in(path: Sequence[Node]) -> EnvironmentBlock | None:
    """Return the newest environment that an agent was told of; None if it is only in what is summarised."""
    blocks = [
        block for node in visible_history(path).rest for block in node.blocks if isinstance(block, EnvironmentBlock)
    ]
    return blocks[-1] if any(not block.is_change for block in blocks) else None


def was_planning(path: Sequence[Node]) -> bool:
    """Return True if the agent was told last, in what it still reads, that it is in plan mode."""
    history = visible_history(path)
    blocks = (block for node in (*history.kept_nodes, *history.rest) for block in node.blocks)
    modes = [plans for block in blocks if (plans := _plans(block)) is not None]
    return bool(modes) and modes[-1]


def with_newest_mode(nodes: Sequence[Node], kept_nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Return the kept ones of `nodes` in branch order, and in any case what said last whether the agent only plans.

    Of a message that is not kept, only that stays, which the engine says then.
    """
    chosen = {node.id: node for node in kept_nodes}
    newest = next((node for node in reversed(nodes) if any(_plans(block) is not None for block in node.blocks)), None)
    if newest is not None and newest.id not in chosen:
        blocks = tuple(block for block in newest.blocks if _plans(block) is not None)
        chosen[newest.id] = msgspec.structs.replace(newest, author="engine", blocks=blocks)
    return tuple(chosen[node.id] for node in nodes if node.id in chosen)


def _plans(block: Block) -> bool | None:
    match block:
        case EnvironmentBlock(plan_mode=plans):
            return plans
        case TextBlock(engine_message="as_plan" | "plan_over" as kind):
            return kind == "as_plan"
        case _:
            return None


def summary_of(node: Node) -> SummaryBlock | None:
    """Return the node's summary block, if any."""
    return next((block for block in node.blocks if isinstance(block, SummaryBlock)), None)


def turn_groups(nodes: Iterable[Node]) -> list[tuple[Node, ...]]:
    """Groups that must stay together: a reply with the results of its calls, or a single message."""
    steps: list[list[Node]] = []
    for node in nodes:
        if steps and node.role in ("tool_result", "system"):
            steps[-1].append(node)
        else:
            steps.append([node])
    return [tuple(step) for step in steps]


def _kept_entries(before: Sequence[Node], kept: Collection[str], room: int) -> tuple[Node, ...]:
    """Return the steps with entries that are kept, the person's messages within `room` characters, and the newest
    mode.
    """
    steps = {node.id for step in turn_groups(before) if any(node.id in kept for node in step) for node in step}
    messages = kept_messages([node for node in before if node.id not in steps], room)
    kept_nodes = (messages.get(node.id, node) for node in before if node.id in steps or node.id in messages)
    return with_newest_mode(before, kept_nodes)


def length_of(nodes: Iterable[Node]) -> int:
    """Return the number of characters that a model reads of these nodes."""
    messages = (message_of(node) for node in nodes)
    return sum(characters_of(message) for message in messages if message is not None)
