"""Leaves out the oldest entries when nothing more can be summarised."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import msgspec

from errand.engine.agent.history.person_messages import kept_messages
from errand.engine.agent.history.shortening import shorten
from errand.engine.agent.history.visible_history import VisibleHistory, length_of, turn_groups, with_newest_mode
from errand.protocol.blocks import Block, ToolResultBlock
from errand.protocol.conversations import Node

# Minimum characters that remain of a shortened result.
_MIN_RESULT_LENGTH = 400


@dataclass(frozen=True, slots=True)
class Truncation:
    """`left_out` are ids of entries; `shortens`: the newest results were shortened."""

    history: VisibleHistory
    left_out: frozenset[str]
    shortens: bool


def truncate(history: VisibleHistory, kept: Collection[str], room: int, most: int, person_room: int) -> Truncation:
    """Return the newest whole steps, of about `room` characters.

    Always includes kept entries, the user's last message, what said last whether the agent only plans, and the newest
    step; if these exceed `most` characters, the
    results of that step lose their middle. Of the steps left out, messages of the person stay within `person_room`
    characters.
    """
    steps = turn_groups(history.rest)
    always = _always_included(steps, kept)
    others = [node for index, step in enumerate(steps) if index not in always for node in step]
    left = room - sum(length_of(steps[index]) for index in always)
    left, first = left - length_of(kept_messages(others, person_room).values()), len(steps)
    while first and (first - 1 in always or (left := left - length_of(steps[first - 1])) >= 0):
        first -= 1
    messages = kept_messages(
        [node for index, step in enumerate(steps) if index < first and index not in always for node in step],
        person_room,
    )
    taken = list[tuple[Node, ...]]()
    for index, step in enumerate(steps):
        if index >= first or index in always:
            taken.append(step)
        elif message := messages.get(step[0].id):
            taken.append((message,))
    over = sum(map(length_of, taken)) - most
    last = _shortened(taken[-1], over) if taken and over > 0 else taken[-1] if taken else ()
    rest = with_newest_mode(history.rest, (node for step in (*taken[:-1], last) for node in step))
    left_out = frozenset(node.id for node in history.rest) - {node.id for node in rest}
    return Truncation(
        replace(history, rest=rest, is_cut=bool(left_out)),
        left_out,
        bool(taken) and length_of(last) < length_of(taken[-1]),
    )


def _always_included(steps: Sequence[tuple[Node, ...]], kept: Collection[str]) -> set[int]:
    user_steps = [index for index, step in enumerate(steps) if step[0].role == "user"]
    held = {index for index, step in enumerate(steps) if any(node.id in kept for node in step)}
    return held | set(user_steps[-1:]) | ({len(steps) - 1} if steps else set())


def _shortened(step: tuple[Node, ...], over: int) -> tuple[Node, ...]:
    """Shorten each result of a step to the same length, so that their total shrinks by `over`."""
    results = [node for node in step if node.role == "tool_result"]
    if not results:
        return step
    longest = max(_MIN_RESULT_LENGTH, (length_of(results) - over) // len(results))
    return tuple(_cut(node, longest) if node.role == "tool_result" else node for node in step)


def _cut(node: Node, longest: int) -> Node:
    return msgspec.structs.replace(node, blocks=tuple(_cut_block(block, longest) for block in node.blocks))


def _cut_block(block: Block, longest: int) -> Block:
    if not isinstance(block, ToolResultBlock):
        return block
    return msgspec.structs.replace(block, text=shorten(block.text, longest))
