"""One of two branches that are compared, from where they part: its rows, kept current, and what its tasks took."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from PySide6.QtCore import QObject, Signal

from app.client.figures import count, duration, elapsed, money
from app.protocol.asks import Ask
from app.protocol.conversations import Node
from app.protocol.events import TextDelta, ToolOutput
from app.protocol.tasks import Task
from app.protocol.usage import Usage
from app.window.rows import Row, Speaker
from app.window.stores.branch import Branch
from app.window.stores.compared import Compared
from app.window.stores.pace import Pace
from app.window.stores.row_list import RowList, Section
from app.window.stores.tasks import is_working

_AT_A_TIME = 50


class ComparedSide(QObject):
    """As a row source: see `ConversationStore`. `told` when its figures are others."""

    reset = Signal()
    inserted = Signal(int, int)
    changed = Signal(int)
    removed = Signal(int, int)
    told = Signal()

    def __init__(self, compared: Compared) -> None:
        super().__init__()
        self.compared = compared
        self.branch = Branch()
        self._base_id: str | None = None
        self._pace = Pace(self._touch)
        self._rows = RowList(self.inserted.emit, self.changed.emit, self.removed.emit)
        self.branch.lock(True)  # what a branch offers at its forks and ends is not for looking at two

    @property
    def has_older(self) -> bool:
        return False

    def count(self) -> int:
        return len(self._rows)

    def row(self, index: int) -> Row:
        return self._rows[index]

    @property
    def leaf_id(self) -> str:
        """Its end as it is now."""
        return self.branch.ids[-1] if self.branch.ids else self.compared.leaf_id

    @property
    def tasks(self) -> tuple[Task, ...]:
        return self.branch.tasks

    @property
    def models(self) -> tuple[str, ...]:
        """Those that wrote it, each once."""
        return tuple(dict.fromkeys(task.model for task in self.tasks))

    @property
    def figures(self) -> str:
        """Tasks, tokens, money and time of all its tasks; money only where every price is known."""
        tasks = self.tasks
        used = sum(task.usage.input_tokens + task.usage.output_tokens for task in tasks)
        costs = [task.usage.cost_usd for task in tasks if task.usage.cost_usd is not None]
        parts = (
            count(len(tasks), "task") if tasks else "",
            count(used, "token") if used else "",
            money(Usage(cost_usd=sum(costs))) if costs and len(costs) == len(tasks) else "",
            duration(sum(max(0.0, elapsed(task)) for task in tasks)) if tasks else "",
            "at work" if any(map(is_working, tasks)) else "",
        )
        return " · ".join(part for part in parts if part) or "No task worked here"

    async def show(self, nodes: Sequence[Node], base_id: str | None, speakers: Mapping[str, Speaker]) -> None:
        """Become the branch of these nodes below `base_id`, of which tasks and asks are known already.

        The rows are made some at a time: those of a thousand nodes at once would hold the window up.
        """
        self._base_id = base_id
        self.branch.show(nodes, False, ())
        self.branch.name(speakers)
        sections: list[Section] = []
        for number, node_id in enumerate(tuple(self.branch.ids), start=1):
            sections.append((node_id, self.branch.rows(node_id)))
            if number % _AT_A_TIME == 0:
                await asyncio.sleep(0)
        self._rows.fill(sections)
        self.reset.emit()
        self.told.emit()

    def name(self, speakers: Mapping[str, Speaker]) -> None:
        self._touch(self.branch.name(speakers))

    def put_node(self, node: Node, *, joins: bool) -> None:
        begins = joins and node.parent_id == self._base_id
        if self.branch.ids or begins:
            self._touch(self.branch.put(node, joins=joins))
            self.told.emit()

    def put_task(self, task: Task) -> None:
        self._touch(self.branch.put_task(task))
        if task.id in self.branch.task_ids:
            self.told.emit()

    def put_ask(self, ask: Ask) -> None:
        self._touch(self.branch.asks.put(ask))

    def put_delta(self, delta: TextDelta | ToolOutput) -> None:
        self._pace.add(self.branch.add_text(delta) if isinstance(delta, TextDelta) else self.branch.add_output(delta))

    def close(self) -> None:
        self._pace.close()

    def _touch(self, node_ids: Iterable[str]) -> None:
        for node_id in node_ids:
            self._pace.drop(node_id)
            self._rows.put(node_id, self.branch.rows(node_id))
