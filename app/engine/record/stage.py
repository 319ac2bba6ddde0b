"""Where a record is played: knows what comes next in it, and gives the loop what people did then at the same place."""

import os
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from app.engine.agent.batch import SKIPPED
from app.engine.agent.context import user_message
from app.engine.agent.prompting import text as prompt_text
from app.engine.agent.task_run import TaskRun
from app.engine.errors import IllegalMove
from app.engine.ids import new_id
from app.engine.messages import text_of
from app.engine.record.lines import TaskRecord
from app.protocol.asks import Approval
from app.protocol.blocks import ToolCallBlock, ToolResultBlock
from app.protocol.conversations import Node
from app.protocol.tasks import Queued


class Turn:
    """A reply of the record, the results of its calls, and what people said while it lasted."""

    def __init__(self, reply: Node) -> None:
        self.reply = reply
        self.results: dict[str, ToolResultBlock] = {}
        self.words: list[str] = []

    @property
    def calls(self) -> tuple[ToolCallBlock, ...]:
        return tuple(block for block in self.reply.blocks if isinstance(block, ToolCallBlock))

    def speaking_call(self) -> str | None:
        """The call during which people spoke: the last one before those that were skipped for it."""
        ran = [call.call_id for call in self.calls if not self._was_skipped(call.call_id)]
        return ran[-1] if ran else None

    def stopping_call(self) -> str | None:
        """The call during which the task was stopped: the first that began and failed, else the last that began."""
        begun = [call_id for call_id, result in self.results.items() if result.execution_id]
        failed = [call_id for call_id in begun if self.results[call_id].is_error]
        return next(iter((*failed, *reversed(begun), *(call.call_id for call in self.calls))), None)

    def _was_skipped(self, call_id: str) -> bool:
        result = self.results.get(call_id)
        return result is not None and result.text == SKIPPED


class Stage:
    """Follows one replay. `run` is set before the play begins."""

    def __init__(self, record: TaskRecord) -> None:
        task = record.head.task
        self.run: TaskRun | None = None
        self.turns = _turns(record.nodes)
        self.approvals = {
            (_turn_of(ask.approval, self.turns), ask.approval.call_id): ask.approval
            for ask in record.asks
            if ask.approval is not None
        }
        # Of the workspace, so that the policy lets it be read.
        self.some_file = Path(os.path.realpath(task.workspace)) / "recorded"
        self.ends_early = task.stop_reason == "manual_stop" or task.status == "interrupted"
        self._was_interrupted = task.status == "interrupted"
        self._at = -1
        self._unchecked: deque[ToolCallBlock] = deque()

    @property
    def turn(self) -> Turn:
        return self.turns[self._at]

    @property
    def is_last(self) -> bool:
        return self._at >= len(self.turns) - 1

    def next_turn(self) -> Turn | None:
        """The turn of the model call that begins now; None past the end of the record."""
        self._at += 1
        if self._at >= len(self.turns):
            return None
        self._unchecked = deque(self.turn.calls)
        return self.turn

    def reply_ends(self) -> None:
        """What was said while a reply without calls was written is read after it."""
        if self.turn.speaking_call() is None:
            self._speak()

    def check_call(self, tool: str) -> tuple[str, Approval | None]:
        """The recorded call that is about to be checked, and what a person was asked about it."""
        call = next((call for call in self._unchecked if call.tool == tool), None)
        if call is None:
            return "", None
        while self._unchecked.popleft() is not call:
            pass  # calls that were never checked: no such tool, or wrong arguments
        if call.call_id == self.turn.speaking_call():
            self._speak()
        return call.call_id, self.approvals.get((self._at, call.call_id))

    def is_stopped_in(self, call_id: str) -> bool:
        return self.ends_early and self.is_last and call_id == self.turn.stopping_call()

    async def halt(self) -> None:
        """Stop the task, or end it as an engine that leaves does, whichever happened."""
        assert self.run is not None
        if self._was_interrupted:
            self.run.interrupt(resumes=False)
            return
        with suppress(IllegalMove):  # it is ending already
            await self.run.stop("the record")

    def _speak(self) -> None:
        assert self.run is not None
        words, self.turn.words = self.turn.words, []
        for text in words:
            self.run.say(Queued(id=new_id("queued"), kind="steer", text=text, queued_at=datetime.now(UTC)))


def _turns(nodes: Sequence[Node]) -> list[Turn]:
    """What a person said before the first reply is the prompt; a nudge is the loop's own."""
    turns: list[Turn] = []
    nudge = prompt_text("nudge")
    for node in nodes:
        if node.role == "assistant":
            turns.append(Turn(node))
        elif turns and node.role == "user" and (said := text_of(user_message(node.blocks))) != nudge:
            turns[-1].words.append(said)
        elif turns:
            turns[-1].results |= {one.call_id: one for one in node.blocks if isinstance(one, ToolResultBlock)}
    return turns


def _turn_of(approval: Approval, turns: Sequence[Turn]) -> int:
    """Ids of calls may come again in later turns: the first turn whose call says the same command."""
    with_id = [
        index for index, turn in enumerate(turns) if any(call.call_id == approval.call_id for call in turn.calls)
    ]
    exact = [
        index
        for index in with_id
        for call in turns[index].calls
        if call.call_id == approval.call_id and approval.command in (None, call.arguments.get("command"))
    ]
    return next(iter((*exact, *with_id)), -1)
