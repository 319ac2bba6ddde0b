"""Questions of a model to the person, put as asks."""

from datetime import UTC, datetime

from app.engine.agent.asks import AskDesk
from app.engine.agent.live import LiveTask
from app.engine.cancel import CancelSignal
from app.engine.ids import new_id
from app.protocol.asks import Ask


class Questions:
    """What `ask_user` of one task works with."""

    def __init__(self, live: LiveTask, desk: AskDesk) -> None:
        self._live = live
        self._desk = desk

    async def ask(self, question: str, choices: tuple[str, ...], call_id: str, cancel: CancelSignal) -> str | None:
        """The answer; None when the task was stopped first."""
        ask = Ask(
            id=new_id("ask"),
            task_id=self._live.task.id,
            conversation_id=self._live.task.conversation_id,
            owner=self._live.task.owner,
            kind="question",
            text=question,
            created_at=datetime.now(UTC),
            choices=choices,
            call_id=call_id,
        )
        return (await self._desk.put(ask, self._live, cancel)).answer
