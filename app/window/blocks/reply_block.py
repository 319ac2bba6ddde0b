"""A piece of an agent's text: bare on the page, or a code card if the piece is a fence."""

from PySide6.QtWidgets import QHBoxLayout, QLabel, QMenu, QVBoxLayout, QWidget

from app.window.blocks.actions import BlockActions
from app.window.blocks.block import Block
from app.window.blocks.code_card import CodeCard
from app.window.blocks.fence import fence_of
from app.window.blocks.kept_mark import KeptMark
from app.window.blocks.markdown import markdown_document
from app.window.blocks.menu import message_markdown
from app.window.blocks.message_menu import add_message_entries
from app.window.blocks.table_view import TableView, has_table
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
        self._table: TableView | None = None
        self._wraps = False
        self._code: CodeCard | None = None
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(theme.tokens.space_tight)
        self._mark = KeptMark(theme, actions.context, self)
        head = QHBoxLayout()
        head.setSpacing(theme.tokens.space_tight)
        head.addWidget(self._step)
        head.addWidget(self._mark)
        head.addStretch(1)
        self._column.addLayout(head)
        self._column.addWidget(self._prose)

    def set_open(self, is_open: bool) -> None:
        """Long lines of code are broken: what a person can open in a text."""
        self._wraps = is_open

    def set_row(self, row: Row) -> None:
        assert isinstance(row, TextRow)
        self._row = row
        self._step.setVisible(row.step > 0)
        self._mark.show_at(row.node.id if row.step else "")
        if row.step:
            self._step.setText(f"Step {row.step}")
        fence = fence_of(row.markdown)
        document = None if fence is not None else markdown_document(row.markdown, self.theme)
        is_table = document is not None and "|" in row.markdown and has_table(document)
        self._prose.setVisible(document is not None and not is_table)
        if self._table is not None:
            self._table.setVisible(is_table)
        if fence is not None:
            self._card().show_fence(fence, is_finished=not row.streaming, wraps=self._wraps)
            self._card().setVisible(True)
            return
        if self._code is not None:
            self._code.setVisible(False)
        if document is not None:
            (self._table_view() if is_table else self._prose).show_document(document)

    def markdown(self) -> str:
        return message_markdown(self._row.node) if self._row else ""

    def fill_menu(self, menu: QMenu) -> None:
        if self._row is not None:
            add_message_entries(menu, self._row.node, self.intents.branches, self.intents.context)

    def _table_view(self) -> TableView:
        """Made for the first table."""
        if self._table is None:
            self._table = TableView(self.theme, self)
            self._table.link.connect(self.intents.open_link)
            self._column.addWidget(self._table)
        return self._table

    def _card(self) -> CodeCard:
        """Made for the first fence: most blocks never show one."""
        if self._code is None:
            self._code = CodeCard(self.theme, self.intents, self)
            self._code.wrap_changed.connect(self._on_wrap_changed)
            self._column.addWidget(self._code)
        return self._code

    def _on_wrap_changed(self, wraps: bool) -> None:
        self._wraps = wraps
        self.opened.emit(wraps)
        self.resized.emit()
