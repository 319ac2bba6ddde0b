"""What of a branch a model still reads: its newest summary, what a person keeps of the entries that the summary stands
for, and all that follows them. How an entry becomes a message is the converter's to say.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from app.engine.agent.context import messages_of
from app.engine.agent.prompting import text
from app.engine.messages import ModelMessage, Text, UserMessage, user_text
from app.protocol.blocks import SummaryBlock
from app.protocol.conversations import Node

# Entries as the agent hears them that reads: `Company.heard`, or `tuple` where all is its own.
Hearing: TypeAlias = Callable[[Sequence[Node]], tuple[Node, ...]]


@dataclass(frozen=True, slots=True)
class SummaryMessage(UserMessage):
    """A summary as a model reads it; of the messages after it the first `kept` are older ones that were kept."""

    kept: int = 0


@dataclass(frozen=True, slots=True)
class Reach:
    """`kept` and `rest` are entries in the order of the branch; without a summary all of them are `rest`.

    `is_cut` says that some of the rest are left out.
    """

    summary: SummaryBlock | None
    kept: tuple[Node, ...]
    rest: tuple[Node, ...]
    is_cut: bool = False

    def messages(self, heard: Hearing) -> tuple[ModelMessage, ...]:
        told = (user_text(text("left_out")),) if self.is_cut else ()
        rest = (*told, *messages_of(heard(self.rest)))
        if self.summary is None:
            return rest
        kept = messages_of(heard(self.kept))
        said = Text(f"{text('summarised')}\n\n{self.summary.text}")
        return (SummaryMessage((said,), kept=len(kept)), *kept, *rest)


def reach_of(path: Sequence[Node], kept: Collection[str] = ()) -> Reach:
    """`kept` are the ids of entries that stay in. A summary of what is not on the path says nothing about it."""
    places = {node.id: place for place, node in enumerate(path)}
    plain = [node for node in path if summary_of(node) is None]
    for node in reversed(path):
        summary = summary_of(node)
        until = places.get(summary.until_id) if summary is not None else None
        if summary is not None and until is not None and until < places[node.id]:
            before = [node for node in plain if places[node.id] <= until]
            after = tuple(node for node in plain if places[node.id] > until)
            return Reach(summary, _kept_steps(before, kept), after)
    return Reach(None, (), tuple(plain))


def read(path: Sequence[Node], kept: Collection[str], heard: Hearing) -> tuple[ModelMessage, ...]:
    """A branch as the messages that a model is sent."""
    return reach_of(path, kept).messages(heard)


def summary_of(node: Node) -> SummaryBlock | None:
    """The summary that a node is, if it is one."""
    return next((block for block in node.blocks if isinstance(block, SummaryBlock)), None)


def steps_of(nodes: Iterable[Node]) -> list[tuple[Node, ...]]:
    """What cannot be parted: a reply with the results of its calls, or what somebody said."""
    steps: list[list[Node]] = []
    for node in nodes:
        if steps and node.role in ("tool_result", "system"):
            steps[-1].append(node)
        else:
            steps.append([node])
    return [tuple(step) for step in steps]


def _kept_steps(before: Iterable[Node], kept: Collection[str]) -> tuple[Node, ...]:
    return tuple(node for step in steps_of(before) if any(node.id in kept for node in step) for node in step)
