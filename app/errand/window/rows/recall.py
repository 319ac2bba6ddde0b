"""What an agent was given from memory: one line that expands to the entries, each with a way to where it was said."""

from functools import partial

from PySide6.QtWidgets import QVBoxLayout, QWidget

from errand.client.conversation.rows import RecallRow
from errand.client.number_format import moment_text
from errand.client.safe_text import plain
from errand.client.texts.messages import speaker_text
from errand.protocol.blocks import RecalledEntry
from errand.text.notice_text import recall_title, recalled_text
from errand.text.translation import decimal, tr, trn
from errand.window.rows.base import RowActions, RowKind, Spacing, line_estimate
from errand.window.rows.disclosure import DisclosureRowView, LinePart
from errand.window.rows.markdown import plain_document, quoted
from errand.window.rows.text_view import TextView
from errand.window.theme.style import push_button, set_style, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.widgets.boxes import fill, hbox, set_vbox
from errand.window.widgets.containers import clear_layout
from errand.window.widgets.labels import ElidedLabel, TextLabel, one_line

_MAX_ENTRIES = 50  # entries; an agent is given far fewer, but a conversation from a file can hold any number
_MAX_TEXT_LENGTH = 8_000  # characters of an entry; an agent is given fewer, the same applies
_MAX_TITLE_LENGTH = 300  # characters
_SCORE = tr("How well it matches the message above (higher is better)")
_HINT = tr("The agent read this with the message above.")


class RecalledEntryView(QWidget):
    """One entry: who said it, when and where, the score, a button to the source, and the text."""

    def __init__(self, theme: Theme, actions: RowActions, entry: RecalledEntry) -> None:
        super().__init__()
        tokens = theme.tokens
        origin, text = entry_parts(entry)
        score = TextLabel(theme, decimal(f"{entry.score:.2f}"), size=tokens.size_small, tone="muted")
        score.setAccessibleName(tr("Score {score}").format(score=decimal(f"{entry.score:.2f}")))
        set_tool_tip(score, _SCORE)
        source = push_button(tr("Go to source"), "quiet")
        set_style(source, "tone", "link")
        source.setAccessibleName(tr("Go to source: {origin}").format(origin=origin))
        source.clicked.connect(partial(actions.open_source, entry.conversation_id, entry.node_id))
        text_view = TextView(theme, origin, self)
        text_view.show_document(plain_document(text, theme, colour="muted"))
        title = ElidedLabel(theme, origin, size=tokens.size_small)
        set_vbox(self, hbox(fill(title), score, source, spacing=tokens.space_close), text_view, spacing=0)


class RecallView(DisclosureRowView[RecallRow]):
    def __init__(self, theme: Theme, actions: RowActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        self._hint = TextLabel(theme, size=theme.tokens.size_small, tone="muted", wrap=True)
        self._entries = QVBoxLayout()
        self._entries.setSpacing(theme.tokens.space_close)
        self.content.addWidget(self._hint)
        self.content.addLayout(self._entries)

    def set_row(self, row: RecallRow) -> None:
        clear_layout(self._entries)
        super().set_row(row)

    def markdown(self) -> str:
        return _markdown(self.row, True) if self.row is not None else ""

    def show_current(self, row: RecallRow) -> None:
        if self.is_open and not self._entries.count():
            self._fill(row)
        self.show_line("history", [LinePart(recall_title(row.recall), "text")])

    def _fill(self, row: RecallRow) -> None:
        entries = row.recall.entries
        for entry in entries[:_MAX_ENTRIES]:
            view = RecalledEntryView(self.theme, self.row_actions, entry)
            self._entries.addWidget(view)
            view.show()  # otherwise Qt shows it later, and the measured height lacks it
        more = len(entries) - _MAX_ENTRIES
        self._hint.setText(
            f"{trn('{n} more entry not shown.', '{n} more entries not shown.', more)} {_HINT}" if more > 0 else _HINT
        )


def entry_parts(entry: RecalledEntry) -> tuple[str, str]:
    """Return the origin of an entry, on one line, and its text; safe to display."""
    title = one_line(entry.conversation_title, _MAX_TITLE_LENGTH)
    where = tr("“{title}”").format(title=title) if title else tr("an untitled conversation")
    text = plain(entry.text).strip("\n")
    origin = tr("{who}, {time}, in {where}").format(
        who=speaker_text(entry.role, entry.speaker), time=moment_text(entry.at), where=where
    )
    return origin, text if len(text) <= _MAX_TEXT_LENGTH else f"{text[:_MAX_TEXT_LENGTH]}…"


def _markdown(row: RecallRow, is_open: bool) -> str:
    title = recall_title(row.recall)
    if not is_open:
        return title
    return "\n\n".join((title, *(quoted(plain(recalled_text(entry))) for entry in row.recall.entries[:_MAX_ENTRIES])))


def _text(row: RecallRow) -> str:
    return "\n".join(entry_parts(entry)[1] for entry in row.recall.entries[:_MAX_ENTRIES])


RECALL = RowKind(
    RecallRow,
    RecallView,
    spacing=lambda row: Spacing.ACTIVITY,
    estimate=line_estimate,
    markdown=_markdown,
    text=_text,
)
