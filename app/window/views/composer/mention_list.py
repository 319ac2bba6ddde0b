"""The completion list of agent names after an @."""

from collections.abc import Callable

from PySide6.QtWidgets import QListWidgetItem

from app.protocol.agents import Agent
from app.window.theme.theme import Theme
from app.window.views.composer.completion_list import CompletionListView
from app.window.views.composer.prompt_edit import PromptEditView
from app.window.widgets.agent_dot import agent_icon

_MAX_SHOWN = 8


class MentionListView(CompletionListView):
    """`agents` returns the agents to complete; a single one is not offered."""

    def __init__(self, field: PromptEditView, agents: Callable[[], tuple[Agent, ...]], theme: Theme) -> None:
        self._agents = agents
        super().__init__(field, "Agents to name", theme)

    def start(self) -> int:
        """The position of the @ before the cursor; -1 if there is none, or if it is part of a word."""
        cursor = self.field.textCursor()
        line, column = cursor.block().text(), cursor.positionInBlock()
        at = line.rfind("@", 0, column)
        if at < 0 or (at > 0 and (line[at - 1].isalnum() or line[at - 1] in "@.")):
            return -1
        return cursor.block().position() + at

    def items(self, start: int) -> list[QListWidgetItem]:
        """The agents whose names start with the typed text; names may contain blanks."""
        cursor = self.field.textCursor()
        typed = cursor.block().text()[start + 1 - cursor.block().position() : cursor.positionInBlock()].casefold()
        agents = self._agents()
        if len(agents) < 2 or any(agent.name.casefold() == typed.strip() for agent in agents if typed.endswith(" ")):
            return []
        found = [agent for agent in agents if agent.name.casefold().startswith(typed)][:_MAX_SHOWN]
        return [QListWidgetItem(agent_icon(agent.color, self.theme), agent.name) for agent in found]

    def choose(self, item: QListWidgetItem | None) -> None:
        start = self.start()
        if item is None or start < 0:
            return
        cursor = self.field.textCursor()
        cursor.setPosition(start + 1, cursor.MoveMode.KeepAnchor)
        cursor.insertText(f"{item.text()} ")
        self.hide()
