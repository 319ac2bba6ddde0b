"""A list above the cursor that completes what is typed in the composer: its base, and names of agents after an @."""

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QPoint, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QListWidget, QListWidgetItem, QVBoxLayout

from errand.protocol.agents import Agent
from errand.text.translation import tr
from errand.window.theme.style import set_style
from errand.window.theme.theme import Theme
from errand.window.views.composer.prompt_edit import PromptEditView
from errand.window.widgets.agent_dot import agent_icon
from errand.window.widgets.dialogs import move_on_screen

_MAX_SHOWN = 8
_ACCEPT_KEYS = (Qt.Key.Key_Tab, Qt.Key.Key_Return, Qt.Key.Key_Enter)
_STEPS = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}


class CompletionListView(QFrame):
    """Subclasses say where the completion starts, what is offered and what a choice does.

    The focus stays in the text field.
    """

    def __init__(self, field: PromptEditView, name: str, theme: Theme) -> None:
        super().__init__(field, Qt.WindowType.ToolTip)
        self.field = field
        self.theme = theme
        self._left = -1  # where the completion that was dismissed starts
        set_style(self, "look", "popover")
        self.list = QListWidget()
        self.list.setAccessibleName(name)
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.ensurePolished()  # rows are measured before the list is shown
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(1, 1, 1, 1)
        self._column.setSizeConstraint(QVBoxLayout.SizeConstraint.SetFixedSize)
        self._column.addWidget(self.list)
        field.cursorPositionChanged.connect(self.update_items)
        field.focused.connect(self._on_focused)
        field.installEventFilter(self)
        self.list.itemClicked.connect(self.choose)

    def start(self) -> int:
        """Return the position in the text where the completion starts; -1 if nothing is to be completed."""
        raise NotImplementedError

    def items(self, start: int) -> list[QListWidgetItem]:
        """Return the items for the text between `start` and the cursor."""
        raise NotImplementedError

    def choose(self, item: QListWidgetItem | None) -> None:
        """Take what was chosen."""
        raise NotImplementedError

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Handle the keys of the list before the text field does."""
        if not self.isVisible() or not isinstance(event, QKeyEvent) or self.field.is_composing:
            return super().eventFilter(watched, event)
        return event.type() == QEvent.Type.KeyPress and self._handle_key(event)

    def update_items(self) -> None:
        start = self.start()
        items = self.items(start) if start >= 0 and start != self._left else []
        if start < 0:
            self._left = -1
        if not items or not self.field.hasFocus():
            self.hide()
            return
        self.list.clear()
        for item in items:
            self.list.addItem(item)
        self.list.setCurrentRow(0)
        self._place()

    def dismiss(self) -> bool:
        """Close the list until another completion begins; False if it is closed."""
        if not self.isVisible():
            return False
        self._left = self.start()
        self.hide()
        return True

    def _handle_key(self, event: QKeyEvent) -> bool:
        key = Qt.Key(event.key())
        if event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier:
            return False
        if key in _STEPS:
            row = self.list.currentRow() + _STEPS[key]
            self.list.setCurrentRow(max(0, min(self.list.count() - 1, row)))
        elif key in _ACCEPT_KEYS:
            self.choose(self.list.currentItem())
        elif key == Qt.Key.Key_Escape:
            self.dismiss()
        else:
            return False
        return True

    def _on_focused(self, focused: bool) -> None:
        if not focused:
            self.hide()

    def _place(self) -> None:
        """Show the list above the cursor's line."""
        rows = self.list.count()
        self.list.setFixedHeight(rows * self.list.sizeHintForRow(0) + 2)
        self.list.setFixedWidth(self.list.sizeHintForColumn(0) + 2 * self.theme.tokens.space_far)
        self._column.activate()
        corner = self.field.viewport().mapToGlobal(self.field.cursorRect().topLeft())
        move_on_screen(self, corner - QPoint(0, self.height() + self.theme.tokens.space_tight))
        self.show()


class MentionListView(CompletionListView):
    """`agents` returns the agents to complete; a single one is not offered."""

    def __init__(self, field: PromptEditView, agents: Callable[[], tuple[Agent, ...]], theme: Theme) -> None:
        self._agents = agents
        super().__init__(field, tr("Mention an agent"), theme)

    def start(self) -> int:
        """Return the position of the @ before the cursor; -1 if there is none, or if it is part of a word."""
        cursor = self.field.textCursor()
        line, column = cursor.block().text(), cursor.positionInBlock()
        at = line.rfind("@", 0, column)
        if at < 0 or (at > 0 and (line[at - 1].isalnum() or line[at - 1] in "@.")):
            return -1
        return cursor.block().position() + at

    def items(self, start: int) -> list[QListWidgetItem]:
        """Return the agents whose names start with the typed text; names may contain blanks."""
        cursor = self.field.textCursor()
        typed = cursor.block().text()[start + 1 - cursor.block().position() : cursor.positionInBlock()].casefold()
        agents = self._agents()
        if len(agents) < 2 or any(agent.name.casefold() == typed.strip() for agent in agents if typed.endswith(" ")):
            return []
        matches = [agent for agent in agents if agent.name.casefold().startswith(typed)][:_MAX_SHOWN]
        return [QListWidgetItem(agent_icon(agent.color, self.theme), agent.name) for agent in matches]

    def choose(self, item: QListWidgetItem | None) -> None:
        start = self.start()
        if item is None or start < 0:
            return
        cursor = self.field.textCursor()
        cursor.setPosition(start + 1, cursor.MoveMode.KeepAnchor)
        cursor.insertText(f"{item.text()} ")
        self.hide()
