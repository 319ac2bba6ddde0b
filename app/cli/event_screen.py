"""`errand run --events`: what happens in the events of another interface, one JSON object a line."""

import msgspec

from app.cli.screen import JsonScreen, Output, Shown
from app.client.agent_view import AgentEvent, AgentView
from app.client.thought_view import ThoughtEvent, ThoughtView
from app.protocol.events import EventRecord


class EventScreen(JsonScreen):
    """Shows what a view makes of the messages; a lost line is said on standard error."""

    def __init__(self, output: Output, view: AgentView | ThoughtView) -> None:
        super().__init__(output)
        self._output = output
        self._view = view

    def show(self, conversation_id: str, message: Shown) -> None:
        for event in self._events(message):
            self._output.line(msgspec.json.encode(event).decode())

    def _events(self, message: Shown) -> tuple[AgentEvent | ThoughtEvent, ...]:
        if isinstance(message, EventRecord):
            return self._view.record(message.event)
        return self._view.delta(message) if isinstance(self._view, AgentView) else ()
