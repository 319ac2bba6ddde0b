"""What an agent was given from memory: one line that expands to the entries, each with a way to where it was said."""

from functools import partial

from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from errand.client.conversation.rows import RecallRow
from errand.client.number_format import moment_text
from errand.client.safe_text import plain
from errand.client.texts.messages import speaker_text
from errand.client.texts.recall import folder_text, reason_text, withheld_text
from errand.protocol.blocks import RecallBlock, RecalledEntry, WithheldEntries
from errand.protocol.memory import ShareChoice
from errand.text.notice_text import recall_title, recalled_text
from errand.text.translation import tr, trn
from errand.window.rows.base import RowActions, RowKind, Spacing, line_estimate
from errand.window.rows.disclosure import DisclosureRowView, LinePart
from errand.window.rows.markdown import plain_document, quoted
from errand.window.rows.text_view import TextView
from errand.window.theme.style import push_button, set_style, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.widgets.boxes import fill, hbox, set_vbox, stretch
from errand.window.widgets.containers import clear_layout
from errand.window.widgets.labels import ElidedLabel, TextLabel, one_line

_MAX_ENTRIES = 50  # entries; an agent is given far fewer, but a conversation from a file can hold any number
_MAX_TEXT_LENGTH = 8_000  # characters of an entry; an agent is given fewer, the same applies
_MAX_TITLE_LENGTH = 300  # characters
_MAX_QUESTIONS = 3
_NOT_AGAIN = tr("Agents are never given this entry again without searching for it.")
_AGAIN = tr("Agents may be given this entry again.")
_HINT = tr("The agent read this with the message above.")


class RecalledEntryView(QWidget):
    """One entry: who said it, when and where, why it was recalled, a button to the source, and the text."""

    def __init__(self, theme: Theme, actions: RowActions, entry: RecalledEntry) -> None:
        super().__init__()
        tokens = theme.tokens
        self._actions, self._node_id = actions.recall, entry.node_id
        origin, text = entry_parts(entry)
        reason = TextLabel(theme, reason_text(entry), size=tokens.size_small, tone="muted")
        source = push_button(tr("Go to source"), "quiet")
        set_style(source, "tone", "link")
        source.setAccessibleName(tr("Go to source: {origin}").format(origin=origin))
        source.clicked.connect(partial(actions.open_source, entry.conversation_id, entry.node_id))
        self._again = push_button(tr("Not this again"), "quiet")
        set_style(self._again, "tone", "link")
        self._again.clicked.connect(self._on_again_clicked)
        text_view = TextView(theme, origin, self)
        text_view.show_document(plain_document(text, theme, colour="muted"))
        title = ElidedLabel(theme, origin, size=tokens.size_small)
        row = hbox(fill(title), reason, self._again, source, spacing=tokens.space_close)
        set_vbox(self, row, text_view, spacing=0)
        self.show_given()

    def show_given(self) -> None:
        is_given = self._actions.is_given(self._node_id)
        self._again.setText(tr("Not this again") if is_given else tr("Give it again"))
        self._again.setAccessibleName(self._again.text())
        set_tool_tip(self._again, _NOT_AGAIN if is_given else _AGAIN)

    def _on_again_clicked(self) -> None:
        self._actions.give(self._node_id, again=not self._actions.is_given(self._node_id))


class ShareView(QWidget):
    """The question whether another folder shares what memory has of it; it holds nothing up."""

    def __init__(self, theme: Theme, actions: RowActions, recall: RecallBlock, withheld: WithheldEntries) -> None:
        super().__init__()
        self._actions, self._recall, self._withheld = actions.recall, recall, withheld
        tokens = theme.tokens
        self._label = TextLabel(theme, size=tokens.size_small, wrap=True)
        self._buttons: dict[ShareChoice, QPushButton] = {
            "share": push_button(tr("Share between these two")),
            "share_all": push_button(tr("Share all folders")),
            "apart": push_button(tr("Keep apart"), "quiet"),
        }
        for choice, button in self._buttons.items():
            button.clicked.connect(partial(self._on_chosen, choice))
        set_vbox(
            self,
            self._label,
            hbox(*self._buttons.values(), stretch(1), spacing=tokens.space_close),
            spacing=tokens.space_tight,
        )
        self.show_decision()

    def show_decision(self) -> None:
        decision = self._actions.decision(self._recall.folder, self._withheld.folder)
        other = folder_text(self._withheld.folder)
        match decision:
            case "share":
                text = tr("Memory of {folder} is shared with this folder from now on.").format(folder=other)
            case "share_all":
                text = tr("Memory of all folders is shared from now on.")
            case "apart":
                text = tr("Memory of {folder} is kept apart from this folder.").format(folder=other)
            case None:
                text = withheld_text(self._recall, self._withheld)
        self._label.setText(text)
        for choice, button in self._buttons.items():
            button.setEnabled(choice != decision)

    def _on_chosen(self, choice: ShareChoice, _: bool = False) -> None:
        self._actions.share(self._recall.folder, self._withheld.folder, choice)


class RecallView(DisclosureRowView[RecallRow]):
    def __init__(self, theme: Theme, actions: RowActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        self._hint = TextLabel(theme, size=theme.tokens.size_small, tone="muted", wrap=True)
        self._entries = QVBoxLayout()
        self._entries.setSpacing(theme.tokens.space_close)
        self._questions = QVBoxLayout()
        tokens = theme.tokens
        left = tokens.space_close + tokens.icon_small + tokens.space_close
        self._questions.setContentsMargins(left, 0, 0, 0)
        self.content.addWidget(self._hint)
        self.content.addLayout(self._entries)
        layout = self.layout()
        assert isinstance(layout, QVBoxLayout)
        layout.addLayout(self._questions)
        actions.recall.changed.connect(self._on_changed)

    def set_row(self, row: RecallRow) -> None:
        clear_layout(self._entries)
        clear_layout(self._questions)
        for withheld in row.recall.withheld[:_MAX_QUESTIONS]:
            view = ShareView(self.theme, self.row_actions, row.recall, withheld)
            self._questions.addWidget(view)
            view.show()
        super().set_row(row)

    def markdown(self) -> str:
        return _markdown(self.row, True) if self.row is not None else ""

    def show_current(self, row: RecallRow) -> None:
        if self.is_open and not self._entries.count():
            self._fill(row)
        self.show_line("history", [LinePart(recall_title(row.recall), "text")], can_open=bool(row.recall.entries))

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

    def _on_changed(self) -> None:
        for view in self.findChildren(RecalledEntryView):
            view.show_given()
        questions = self.findChildren(ShareView)
        for question in questions:
            question.show_decision()
        if questions:
            self.resized.emit()


def entry_parts(entry: RecalledEntry) -> tuple[str, str]:
    """Return the origin of an entry, on one line, and its text; safe to display."""
    title = one_line(entry.conversation_title, _MAX_TITLE_LENGTH)
    where = tr("“{title}”").format(title=title) if title else tr("an untitled conversation")
    if entry.folder:
        where = tr("{conversation}, {folder}").format(conversation=where, folder=folder_text(entry.folder))
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
