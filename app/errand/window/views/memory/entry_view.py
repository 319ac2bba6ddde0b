"""One entry of memory in full, and what can be done with it: go to its source, pin it, correct it, forget it."""

import msgspec
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QTextOption
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from errand.client.number_format import moment_text
from errand.client.safe_text import plain
from errand.client.texts.messages import repetition_text, speaker_text
from errand.client.texts.recall import folder_of_fact
from errand.protocol.memory import MemoryItem, MemoryPreviewForgetResult
from errand.text.translation import tr, uncapitalised
from errand.window.stores.memory.facts import FactStore
from errand.window.theme.style import push_button, set_style
from errand.window.theme.theme import Theme
from errand.window.views.memory.fact_form import FactFormView
from errand.window.views.memory.texts import KINDS, forget_question, origin_line
from errand.window.widgets.boxes import STRETCH, fill, hbox, set_vbox
from errand.window.widgets.containers import FlowLayout
from errand.window.widgets.forms.confirmation import ConfirmationView
from errand.window.widgets.labels import ElidedLabel, TextLabel

_Wrap = QTextOption.WrapMode
_MAX_WORD_LENGTH = 2_000  # Qt takes a second to find places to break a word of 50,000 characters

_NO_VECTOR = tr("Only found by its words: it has no vector.")


class EntryView(QWidget):
    """`show_entry` shows what is known at once; `show_whole` puts the whole text in.

    Emits `source_requested`, `pinned` once a fact is stored, `preview_requested` before the question about forgetting,
    and `forget_requested` after it.
    """

    source_requested = Signal()
    pinned = Signal()
    preview_requested = Signal()
    forget_requested = Signal()

    def __init__(self, theme: Theme, facts: FactStore) -> None:
        super().__init__()
        self._theme = theme
        self._item: MemoryItem | None = None
        self._who = TextLabel(theme, bold=True)
        self._origin = ElidedLabel(theme, tone="muted")
        self._folder = ElidedLabel(theme, size=theme.tokens.size_small, tone="muted", mode=Qt.TextElideMode.ElideMiddle)
        self._note = TextLabel(theme, _NO_VECTOR, size=theme.tokens.size_small, tone="muted")
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
        self._correct, self._forget = push_button(tr("Correct…")), push_button(tr("Forget…"))
        self._is_correcting = False
        self._form = FactFormView(theme, facts)
        confirm, cancel = push_button(tr("Forget permanently"), "danger"), push_button(tr("Cancel"))
        self._question = ConfirmationView(theme, confirm, cancel=cancel)
        self._buttons = QWidget()
        self._lay_out()
        self._source.clicked.connect(self.source_requested)
        self._pin.clicked.connect(self._on_pin_clicked)
        self._correct.clicked.connect(self._on_correct_clicked)
        self._forget.clicked.connect(self.ask_to_forget)
        confirm.clicked.connect(self._on_forget_confirmed)
        cancel.clicked.connect(self._on_forget_cancelled)
        self._form.closed.connect(self._on_form_closed)
        self._form.done.connect(self._on_pinned)

    @property
    def item(self) -> MemoryItem | None:
        return self._item

    @property
    def is_asking(self) -> bool:
        """True while the form or the question is open."""
        return not (self._form.isHidden() and self._question.isHidden())

    def show_entry(self, item: MemoryItem) -> None:
        if self._item is not None and self._item.number == item.number:
            return  # the same after a reload: what is open here stays
        self._form.hide()
        self._question.hide()
        self._buttons.show()
        self.show_whole(item)

    def show_whole(self, item: MemoryItem) -> None:
        if self._item is not None and self._item.number == item.number:  # alone, it does not know of the others
            item = msgspec.structs.replace(item, times=self._item.times, newer=self._item.newer)
        self._item = item
        kind = uncapitalised(KINDS[item.role][0])
        parts = (speaker_text(item.role, item.speaker), kind, repetition_text(item))
        self._who.setText(" · ".join(filter(None, parts)))
        self._origin.set_text(origin_line(moment_text(item.at), item))
        self._folder.set_text(plain(item.folder))
        self._folder.setVisible(bool(item.folder))
        self._note.setHidden(item.has_vector)
        text = plain(item.text)
        if text != self._text.toPlainText():
            is_endless = max(map(len, text.split()), default=0) > _MAX_WORD_LENGTH
            self._text.setWordWrapMode(_Wrap.WrapAnywhere if is_endless else _Wrap.WrapAtWordBoundaryOrAnywhere)
            self._text.setPlainText(text)

    def ask_to_forget(self) -> None:
        if self._item is not None:
            self._form.hide()
            self._buttons.hide()
            self._question.show_text(tr("Checking what will be removed…"))
            self.preview_requested.emit()

    def show_preview(self, found: MemoryPreviewForgetResult) -> None:
        """Ask about what would go, unless the question was taken back meanwhile."""
        if not self._question.isHidden():
            self._question.ask(forget_question(found))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape takes a question back; the dialog stays open."""
        if event.key() == Qt.Key.Key_Escape and not self._question.isHidden():
            self._question.cancel()
        else:
            super().keyPressEvent(event)

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        buttons = FlowLayout(tokens.space_close, self._source, self._pin, self._correct, self._forget)
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
        item, self._is_correcting = self._item, False
        if item is not None:
            self._buttons.hide()
            self._form.open_new(
                item.text, folder=item.folder, conversation_id=item.conversation_id, node_id=item.node_id
            )

    def _on_correct_clicked(self) -> None:
        """Messages never change: the corrected text becomes a fact, and then the message is forgotten.

        What was said in a folder is told nowhere else, unless the person chooses so.
        """
        item, self._is_correcting = self._item, True
        if item is not None:
            self._buttons.hide()
            folder = folder_of_fact(item)
            scope = "folder" if folder else "always"
            self._form.open_new(item.text, scope=scope, folder=folder, conversation_id=item.conversation_id)

    def _on_pinned(self) -> None:
        if self._is_correcting:
            self.ask_to_forget()
        else:
            self.pinned.emit()

    def _on_form_closed(self) -> None:
        self._buttons.show()
        self._pin.setFocus()

    def _on_forget_confirmed(self) -> None:
        self._question.show_text(tr("Forgetting…"))
        self.forget_requested.emit()

    def _on_forget_cancelled(self) -> None:
        self._buttons.show()
        self._forget.setFocus()

    def show_forget_failed(self) -> None:
        """The engine did not forget it: offer it again."""
        self._question.hide()
        self._buttons.show()
