"""The sub-agents of one task: starts them, waits for them, and counts what they use into the task's own use."""

import asyncio
from collections.abc import Callable, Iterable
from functools import reduce
from typing import Protocol

from errand.engine.agent.run.limits import LimitUse, TaskLimits
from errand.engine.agent.run.stop_policy import StopPolicy
from errand.engine.agent.run.task_state import TaskState
from errand.engine.core.cancel import CancelSignal
from errand.engine.tools.context import SubAgentOrder
from errand.engine.tools.results import ToolError
from errand.engine.tools.task import MAX_CONCURRENT_TASKS
from errand.protocol.tasks.groups import LimitKind
from errand.protocol.tasks.task import Task, replace_fields
from errand.protocol.usage import Usage, add_usage

_PUBLISH_EVERY_S = 1.0


class SubAgentRunner(Protocol):
    """Runs the sub-agents of all tasks."""

    async def start_sub_agent(self, order: SubAgentOrder, parent: Task, call_id: str) -> Task:
        """Start it, or resume the one that an earlier engine started for this call. An ended one is returned."""
        ...

    async def wait_sub_agent(self, task_id: str) -> Task:
        """Return the newest record of a task that has ended or was interrupted."""
        ...

    def stop_sub_agent(self, task_id: str, by: str) -> None: ...

    def delegation_of(self, task_id: str | None) -> "Delegation | None":
        """Return the delegation of a running task."""
        ...


def with_children(task: Task, children: Iterable[Task]) -> Task:
    """Return the task with what its sub-agents have used."""
    below = tuple(children)
    return replace_fields(
        task,
        delegated=reduce(add_usage, (child.total_usage for child in below), Usage()),
        delegated_turns=sum(child.progress.step_count + child.progress.delegated_turns for child in below),
    )


class Delegation:
    """Implements `SubAgents` for one task, and counts the use of its sub-agents and of those below them."""

    def __init__(
        self, state: TaskState, policy: StopPolicy, runner: SubAgentRunner, parent: "Delegation | None"
    ) -> None:
        self._state = state
        self._policy = policy
        # What a new sub-agent may use.
        self.limits_left: Callable[[], TaskLimits] = policy.limits_left
        self._runner = runner
        self._parent = parent
        self._children: dict[str, Task] = {}
        self._places = asyncio.Semaphore(MAX_CONCURRENT_TASKS)
        self._timer: asyncio.TimerHandle | None = None
        if parent is not None:
            state.listeners.add(parent.child_changed)

    def add_ended(self, children: Iterable[Task]) -> None:
        """Sub-agents of an earlier engine."""
        for child in children:
            self._children[child.id] = child
        self._count()

    async def run(self, order: SubAgentOrder, call_id: str, cancel: CancelSignal) -> Task:
        async with self._places:
            if cancel.is_set:
                raise ToolError("Operation aborted")
            child = await self._runner.start_sub_agent(order, self._state.task, call_id)
            self.child_changed(child)
            unsubscribe = cancel.subscribe(lambda: self._stop(child.id, cancel))
            try:
                ended = await self._runner.wait_sub_agent(child.id)
            finally:
                unsubscribe()
            self.child_changed(ended)
            return ended

    def child_changed(self, child: Task) -> None:
        """A sub-agent has made progress. Published at most once a second, since twenty of them make many steps."""
        self._children[child.id] = child
        self._count()
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_PUBLISH_EVERY_S, self._publish)

    def reached_limit(self) -> LimitUse[LimitKind] | None:
        """Return the limit that this task, with all below it, or one above it has reached."""
        own = self._policy.reached_limit()
        return own if own is not None or self._parent is None else self._parent.reached_limit()

    def limit_above(self) -> LimitUse[LimitKind] | None:
        """Return the limit that a task above this one has reached with it."""
        if self._parent is None:
            return None
        self._parent.child_changed(self._state.task)
        return self._parent.reached_limit()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _stop(self, task_id: str, cancel: CancelSignal) -> None:
        """The engine's end interrupts every task itself."""
        if cancel.cause is None or cancel.cause.kind != "engine_end":
            self._runner.stop_sub_agent(task_id, cancel.cause.by if cancel.cause is not None else "")

    def _count(self) -> None:
        counted = with_children(self._state.task, self._children.values())
        waits = [child for child in self._children.values() if child.outcome.ended_at is None]
        all_wait = bool(waits) and all(child.activity.status in ("waiting_user", "paused") for child in waits)
        changed = not all(child.outcome.changed_nothing for child in self._children.values())
        self._state.set_delegated(
            counted.progress.delegated, counted.progress.delegated_turns, all_wait=all_wait, changed=changed
        )
        if self._parent is not None:
            self._parent.child_changed(self._state.task)

    def _publish(self) -> None:
        self._timer = None
        if self._state.task.outcome.ended_at is None:
            self._state.set(self._state.task)
