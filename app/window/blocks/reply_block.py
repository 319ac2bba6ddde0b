"""A piece of an agent's text: bare on the page, or a code card if the piece is a fence."""

from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from app.window.blocks.actions import BlockActions
from app.window.blocks.block import Block
from app.window.blocks.code_card import CodeCard
from app.window.blocks.fence import fence_of
from app.window.blocks.markdown import markdown_document
from app.window.blocks.menu import message_markdown
from app.window.blocks.text_view import TextView
from app.window.rows import Row, TextRow
from app.window.theme.look import set_look
from app.window.theme.theme import Theme


class ReplyBlock(Block):
    def __init__(self, theme: Theme, actions: BlockActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        self._row: TextRow | None = None
        self._step = QLabel(self)
        self._step.setFont(theme.font(theme.tokens.size_small))
        set_look(self._step, "tone", "muted")
        self._prose = TextView(theme, "Reply", self)
        self._prose.link.connect(actions.open_link)
        self._code: CodeCard | None = None
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(theme.tokens.space_tight)
        self._column.addWidget(self._step)
        self._column.addWidget(self._prose)

    def set_row(self, row: Row) -> None:
        assert isinstance(row, TextRow)
        self._row = row
        self._step.setVisible(row.step > 0)
        if row.step:
            self._step.setText(f"Step {row.step}")
        fence = fence_of(row.markdown)
        self._prose.setVisible(fence is None)
        if fence is not None:
            self._card().show_fence(fence, is_finished=not row.streaming)
            self._card().setVisible(True)
            return
        if self._code is not None:
            self._code.setVisible(False)
        self._prose.show_document(markdown_document(row.markdown, self.theme))

    def markdown(self) -> str:
        return message_markdown(self._row.node) if self._row else ""

    def _card(self) -> CodeCard:
        """Made for the first fence: most blocks never show one."""
        if self._code is None:
            self._code = CodeCard(self.theme, self.intents, self)
            self._column.addWidget(self._code)
        return self._code
