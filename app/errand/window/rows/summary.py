"""A context summary: one line that expands for reading and editing."""

from PySide6.QtWidgets import QWidget

from errand.client.conversation.rows import SummaryRow
from errand.client.safe_text import plain
from errand.client.texts.context import summary_text
from errand.text.translation import tr
from errand.window.rows.base import RowActions, RowKind, Spacing, line_estimate
from errand.window.rows.disclosure import DisclosureRowView, LinePart
from errand.window.rows.edit import MessageEditField
from errand.window.rows.markdown import markdown_document, quoted, without_markup
from errand.window.rows.message_actions import BranchLock
from errand.window.rows.text_view import TextView
from errand.window.theme.style import push_button, set_style
from errand.window.theme.theme import Theme
from errand.window.widgets.boxes import STRETCH, fill, hbox
from errand.window.widgets.containers import Card
from errand.window.widgets.labels import TextLabel

_HINT = tr("The model reads this instead of the messages above. They stay in the conversation.")


class SummaryView(DisclosureRowView[SummaryRow]):
    """The draft is stored by summary id; while there is a draft, the row shows the text field."""

    def __init__(self, theme: Theme, actions: RowActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        self._is_filling = False
        self._text = TextView(theme, tr("Summary"), self)
        self._text.link.connect(actions.open_link)
        self._edit = push_button(tr("Edit summary"), "quiet")
        self._edit.setAccessibleName(tr("Edit summary"))
        self._edit.clicked.connect(self._on_edit_clicked)
        self._field = MessageEditField()
        self._field.setFont(theme.font(theme.tokens.size_base))
        self._field.setAccessibleName(tr("Summary text"))
        set_style(self._field, "look", "bare")
        self._save = push_button(tr("Save"), "primary")
        self._save.setAccessibleName(tr("Save summary"))
        self._cancel = push_button(tr("Cancel"), "quiet")
        self._card = Card(theme)
        self._lay_out()
        self._field.textChanged.connect(self._on_text_changed)
        self._field.height_changed.connect(self._on_field_resized)
        self._field.cancelled.connect(self._on_cancelled)
        self._save.clicked.connect(self._on_saved)
        self._cancel.clicked.connect(self._on_cancelled)
        BranchLock(actions.branches, (self._edit, self._save), self)

    def markdown(self) -> str:
        return self.row.summary.text if self.row is not None else ""

    def height_for(self, width: int) -> int:
        tokens = self.theme.tokens
        self._field.fit(width - tokens.icon_small - 2 * tokens.space_close - 2 * tokens.space_wide)
        return super().height_for(width)

    def _lay_out(self) -> None:
        tokens = self.theme.tokens
        self._card.body.addWidget(self._field)
        self._card.body.addLayout(hbox(STRETCH, self._cancel, self._save, spacing=tokens.space_close))
        hint = TextLabel(self.theme, _HINT, size=tokens.size_small, tone="muted")
        hint.setWordWrap(True)
        self.content.addWidget(self._text)
        self.content.addWidget(self._card)
        self.content.addLayout(hbox(fill(hint), self._edit))

    def show_current(self, row: SummaryRow) -> None:
        self.show_line("file-text", [LinePart(summary_text(row.summary), "text")])
        draft = self.row_actions.branches.drafts.get(_key(row), "")
        self._card.setVisible(bool(draft))
        self._text.setVisible(not draft)
        self._edit.setVisible(not draft)
        if draft and draft != self._field.toPlainText():
            self._is_filling = True  # this text was not typed by the user
            self._field.setPlainText(draft)
            self._is_filling = False
        if self.is_open and not draft:
            self._text.show_document(markdown_document(plain(row.summary.text), self.theme, muted=True))

    def _on_edit_clicked(self) -> None:
        if self.row is not None:
            self.row_actions.branches.drafts[_key(self.row)] = self.row.summary.text
            self.show_current(self.row)
            self.resized.emit()
            self._field.setFocus()

    def _on_text_changed(self) -> None:
        if self.row is not None and not self._is_filling and self._field.toPlainText().strip():
            self.row_actions.branches.drafts[_key(self.row)] = self._field.toPlainText()

    def _on_field_resized(self) -> None:
        if self.row is not None and not self._is_filling:
            self.resized.emit()

    def _on_saved(self) -> None:
        text = self._field.toPlainText().strip()
        if self.row is not None and text:
            if text != self.row.summary.text:
                self.row_actions.context.change_summary(self.row.node.id, text)
            self._end_edit()

    def _on_cancelled(self) -> None:
        if self.row is not None:
            self._end_edit()

    def _end_edit(self) -> None:
        assert self.row is not None
        self.row_actions.branches.drafts[_key(self.row)] = ""
        self.show_current(self.row)
        self.resized.emit()
        self.line.setFocus()


def _key(row: SummaryRow) -> str:
    return f"summary {row.node.id}"


def _markdown(row: SummaryRow, is_open: bool) -> str:
    title = summary_text(row.summary)
    return f"{title}\n{quoted(plain(row.summary.text))}" if is_open else title


SUMMARY = RowKind(
    SummaryRow,
    SummaryView,
    spacing=lambda row: Spacing.TEXT,
    estimate=line_estimate,
    markdown=_markdown,
    text=lambda row: without_markup(plain(row.summary.text)),
)
