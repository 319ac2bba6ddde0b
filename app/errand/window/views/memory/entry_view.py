"""One entry of memory in full, or several, and what can be done: go to the source, pin, correct, merge, forget."""

import msgspec
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QTextOption
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from errand.client.number_format import moment_text
from errand.client.safe_text import plain
from errand.client.texts.messages import repetition_text, speaker_text
from errand.client.texts.recall import folder_of_fact
from errand.protocol.memory import MemoryItem, MemoryPinParams, MemoryPreviewForgetResult
from errand.text.translation import tr, trn, uncapitalised
from errand.window.stores.memory.entries import ForgetStore
from errand.window.stores.memory.facts import FactStore
from errand.window.theme.style import push_button, set_style, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.views.memory.fact_form import FactFormView
from errand.window.views.memory.texts import KINDS, forget_question, origin_line
from errand.window.widgets.boxes import STRETCH, fill, hbox, set_vbox
from errand.window.widgets.containers import FlowLayout
from errand.window.widgets.forms.confirmation import ConfirmationView
from errand.window.widgets.labels import ElidedLabel, TextLabel

_Wrap = QTextOption.WrapMode
_MAX_WORD_LENGTH = 2_000  # Qt takes a second to find places to break a word of 50,000 characters

_NO_VECTOR = tr("Keyword search only.")
_MERGED = tr("Merged, they become one fact, and their messages are forgotten.")
_HOW_TO_SELECT = tr(
    "Select two or more entries to merge them: with Ctrl and a click, or with Shift and the arrow keys."
)
MAX_MERGED_ENTRIES = 20
_TOO_MANY = trn("At most {n} entry can be merged.", "At most {n} entries can be merged.", MAX_MERGED_ENTRIES)


class EntryView(QWidget):
    """`show_entries` shows what is known at once; `show_whole` puts the whole texts in.

    Emits `source_requested`, `pinned` once a fact is stored, and `settled` when neither form nor question is open any
    more.
    """

    source_requested = Signal()
    pinned = Signal()
    settled = Signal()

    def __init__(self, theme: Theme, facts: FactStore, forgetting: ForgetStore) -> None:
        super().__init__()
        self._theme = theme
        self._forgetting = forgetting
        self._items: tuple[MemoryItem, ...] = ()
        self._who = TextLabel(theme, bold=True)
        self._origin = ElidedLabel(theme, tone="muted")
        self._folder = ElidedLabel(theme, size=theme.tokens.size_small, tone="muted", mode=Qt.TextElideMode.ElideMiddle)
        self._note = TextLabel(theme, size=theme.tokens.size_small, tone="muted")
        self._note.setWordWrap(True)
        self._text = QPlainTextEdit()
        self._text.setReadOnly(True)
        self._text.setTabChangesFocus(True)
        self._text.setAccessibleName(tr("Entry text"))
        self._text.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        set_style(self._text, "look", "code")
        self._source, self._pin = push_button(tr("Go to source")), push_button(tr("Pin as fact…"))
        self._correct, self._merge = push_button(tr("Correct…")), push_button(tr("Merge…"))
        self._forget = push_button(tr("Forget…"))
        self._draft: MemoryPinParams | None = None  # of the fact that the question is about
        self._opener = self._pin
        self._form = FactFormView(theme, facts)
        confirm, cancel = push_button(tr("Forget permanently"), "danger"), push_button(tr("Cancel"))
        self._question = ConfirmationView(theme, confirm, cancel=cancel)
        self._buttons = QWidget()
        self._lay_out()
        self._source.clicked.connect(self.source_requested)
        self._pin.clicked.connect(self._on_pin_clicked)
        self._correct.clicked.connect(self._on_correct_clicked)
        self._merge.clicked.connect(self._on_merge_clicked)
        self._forget.clicked.connect(self.ask_to_forget)
        confirm.clicked.connect(self._on_forget_confirmed)
        cancel.clicked.connect(self._on_forget_cancelled)
        self._form.closed.connect(self._on_form_closed)
        self._form.done.connect(self.pinned)
        self._form.drafted.connect(self._ask)
        forgetting.previewed.connect(self._on_previewed)
        forgetting.failed.connect(self._on_failed)

    @property
    def item(self) -> MemoryItem | None:
        """The entry; None without one, and for several."""
        return self._items[0] if len(self._items) == 1 else None

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(item.number for item in self._items)

    @property
    def node_ids(self) -> tuple[str, ...]:
        return tuple({item.node_id: None for item in self._items})

    @property
    def is_asking(self) -> bool:
        """True while the form or the question is open."""
        return not (self._form.isHidden() and self._question.isHidden())

    def show_entries(self, items: tuple[MemoryItem, ...]) -> None:
        """Show these entries, oldest first."""
        items = tuple(sorted(items, key=lambda item: item.number))
        if self.numbers == tuple(item.number for item in items):
            return  # the same after a reload: what is open here stays
        self._form.hide()
        self._question.hide()
        self._buttons.show()
        self.show_whole(items)

    def show_whole(self, items: tuple[MemoryItem, ...]) -> None:
        if self.item is not None and self.numbers == tuple(item.number for item in items):
            (item,) = items  # alone, it does not know of the others
            items = (msgspec.structs.replace(item, times=self.item.times, newer=self.item.newer),)
        self._items = items
        is_one, can_merge = len(items) == 1, 2 <= len(items) <= MAX_MERGED_ENTRIES
        for button in (self._source, self._pin, self._correct):
            button.setVisible(is_one)
        self._merge.setEnabled(can_merge)
        set_tool_tip(self._merge, "" if can_merge else _HOW_TO_SELECT if is_one else _TOO_MANY)
        if is_one:
            self._show_one(items[0])
        else:
            self._show_several(items)

    def _show_several(self, items: tuple[MemoryItem, ...]) -> None:
        self._who.setText(trn("{n} entry", "{n} entries", len(items)))
        self._origin.hide()
        self._folder.hide()
        self._note.show_text(_MERGED if len(items) <= MAX_MERGED_ENTRIES else _TOO_MANY)
        heads = (f"{speaker_text(item.role, item.speaker)}, {moment_text(item.at)}:" for item in items)
        self._show_text("\n\n".join(f"{head}\n{item.text}" for head, item in zip(heads, items, strict=True)))

    def _show_one(self, item: MemoryItem) -> None:
        kind = uncapitalised(KINDS[item.role][0])
        parts = (speaker_text(item.role, item.speaker), kind, repetition_text(item))
        self._who.setText(" · ".join(filter(None, parts)))
        self._origin.set_text(origin_line(moment_text(item.at), item))
        self._origin.show()
        self._folder.set_text(plain(item.folder))
        self._folder.setVisible(bool(item.folder))
        self._note.show_text("" if item.has_vector else _NO_VECTOR)
        self._show_text(item.text)

    def _show_text(self, text: str) -> None:
        text = plain(text)
        if text != self._text.toPlainText():
            is_endless = max(map(len, text.split()), default=0) > _MAX_WORD_LENGTH
            self._text.setWordWrapMode(_Wrap.WrapAnywhere if is_endless else _Wrap.WrapAtWordBoundaryOrAnywhere)
            self._text.setPlainText(text)

    def ask_to_forget(self) -> None:
        if self._items:
            self._opener = self._forget
            self._form.hide()
            self._ask()

    def _ask(self, draft: MemoryPinParams | None = None) -> None:
        """Ask whether the entries are to be forgotten, and replaced by a fact if there is a draft of one."""
        self._draft = draft
        self._buttons.hide()
        self._question.show_text(tr("Checking what will be removed…"))
        self._forgetting.preview(self.node_ids)

    def _on_previewed(self, node_ids: tuple[str, ...], found: MemoryPreviewForgetResult) -> None:
        """Ask about what would go, unless the question was taken back meanwhile."""
        if node_ids == self.node_ids and not self._question.isHidden():
            fact = self._draft.text if self._draft is not None else None
            self._question.ask(forget_question(found, self.node_ids, fact or ""))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape takes a question back; the dialog stays open."""
        if event.key() == Qt.Key.Key_Escape and not self._question.isHidden():
            self._question.cancel()
        else:
            super().keyPressEvent(event)

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        buttons = FlowLayout(tokens.space_close, self._source, self._pin, self._correct, self._merge, self._forget)
        self._buttons.setLayout(buttons)
        set_vbox(
            self,
            hbox(self._who, STRETCH),
            self._origin,
            self._folder,
            fill(self._text),
            self._note,
            self._buttons,
            self._question,
            self._form,
            spacing=tokens.space_close,
            margins=(tokens.space_wide, 0, 0, 0),
        )

    def _on_pin_clicked(self) -> None:
        if (item := self.item) is not None:
            self._opener = self._pin
            self._buttons.hide()
            self._form.open_new(
                item.text, folder=item.folder, conversation_id=item.conversation_id, node_id=item.node_id
            )

    def _on_correct_clicked(self) -> None:
        """Messages never change: the corrected text becomes a fact, and the message is forgotten."""
        self._opener = self._correct
        self._open_draft((tr("Correct…"), tr("Correct entry…")))

    def _on_merge_clicked(self) -> None:
        self._opener = self._merge
        self._open_draft((tr("Merge…"), tr("Merge entries…")))

    def _open_draft(self, names: tuple[str, str]) -> None:
        self._buttons.hide()
        text = " ".join(dict.fromkeys(item.text for item in self._items))
        folders = {folder_of_fact(item) for item in self._items}
        self._form.open_draft(text, folders, self._items[0].conversation_id, names)

    def _on_form_closed(self) -> None:
        self._buttons.show()
        self._opener.setFocus()
        self.settled.emit()

    def _on_forget_confirmed(self) -> None:
        if self._draft is None:
            self._question.show_text(tr("Forgetting…"))
            self._forgetting.forget(self.node_ids)
        else:
            self._question.show_text(tr("Pinning and forgetting…"))
            self._forgetting.replace(self.node_ids, self._draft)

    def _on_forget_cancelled(self) -> None:
        self._take_back()
        if self._form.isHidden():
            self._forget.setFocus()

    def _on_failed(self) -> None:
        """Offer again what the engine did not do."""
        if not self._question.isHidden():
            self._take_back()

    def show_done(self) -> None:
        """The entries are forgotten: the question is settled."""
        self._question.hide()
        self._buttons.show()
        self.settled.emit()

    def _take_back(self) -> None:
        """Show what the question was about again; what was typed is still there."""
        self._question.hide()
        if self._draft is not None:
            self._draft = None
            self._form.reopen()
        else:
            self._buttons.show()
            self.settled.emit()
