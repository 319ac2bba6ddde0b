"""The form that pins a fact, changes one or merges several: the sentence, and where it holds."""

from collections.abc import Collection
from functools import partial

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QTextOption
from PySide6.QtWidgets import QFileDialog, QPlainTextEdit, QSizePolicy

from errand.client.safe_text import plain
from errand.protocol.memory import MAX_FACT_LENGTH, Fact, FactScope, MemoryPinParams
from errand.text.translation import tr
from errand.window.stores.memory.facts import FactStore
from errand.window.theme.style import push_button, set_style
from errand.window.theme.theme import Theme
from errand.window.widgets.boxes import set_vbox
from errand.window.widgets.forms.combo_box import ComboBox
from errand.window.widgets.forms.form import line_edit
from errand.window.widgets.forms.in_place_form import InPlaceFormView
from errand.window.widgets.input.field_keys import CompositionKeys
from errand.window.widgets.labels import TextLabel

SCOPES: dict[FactScope, str] = {"always": tr("Always"), "me": tr("About me"), "folder": tr("In a folder")}


_LINES = 3
_FIELD_EDGE = 6  # pixels of padding and border above the text, and below it
_OTHER_FOLDERS = tr("These apply in different folders. Choose where the new fact applies.")


class FactTextEdit(QPlainTextEdit):
    """A field for a fact, which is one line however it is wrapped. Enter emits `submitted`."""

    submitted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName(tr("Fact"))
        self.setPlaceholderText(tr("For example: Answer in British English."))
        self.setTabChangesFocus(True)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        set_style(self, "look", "field")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        CompositionKeys(self)

    @property
    def text(self) -> str:
        return " ".join(self.toPlainText().split())

    def sizeHint(self) -> QSize:
        edge = 2 * (round(self.document().documentMargin()) + _FIELD_EDGE)
        return QSize(super().sizeHint().width(), _LINES * self.fontMetrics().lineSpacing() + edge)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.submitted.emit()
        else:
            super().keyPressEvent(event)


class FactFormView(InPlaceFormView):
    """Hidden until one of its `open_` methods.

    `done` gives the fact before, None for a new one, and as it is stored; `merged` gives all facts before, and the one
    that stands for them; `drafted` the parameters of a fact that stands for entries, which is not stored yet.
    """

    done = Signal(object, object)
    merged = Signal(object, object)
    drafted = Signal(object)

    def __init__(self, theme: Theme, facts: FactStore) -> None:
        super().__init__(theme)
        self._facts = facts
        self._base = MemoryPinParams()  # what the fields do not have: the id, or where it was said
        self._before: tuple[Fact, ...] = ()
        self._is_draft = False
        self._opening = 0  # an answer to what was sent before may arrive when something else is open
        self._text = FactTextEdit()
        self._note = TextLabel(theme, tone="muted", wrap=True)
        self._scope = ComboBox(tuple(SCOPES.values()), name=tr("Where the fact applies"))
        self._folder = line_edit(tr("Folder for the fact"), "/home/…")
        self._choose = push_button(tr("Choose…"), name=tr("Choose folder for the fact"))
        self._save, self._cancel = push_button(tr("Pin"), "primary"), push_button(tr("Cancel"), "quiet")
        self._problem = TextLabel(theme, tone="failed", wrap=True)
        self._lay_out()
        self._text.textChanged.connect(self._on_edited)
        self._folder.textChanged.connect(self._on_edited)
        self._scope.currentIndexChanged.connect(self._on_edited)
        self._text.submitted.connect(self._on_save_clicked)
        self._folder.returnPressed.connect(self._on_save_clicked)
        self._choose.clicked.connect(self._on_choose_clicked)
        self._save.clicked.connect(self._on_save_clicked)
        self._cancel.clicked.connect(self.close_form)

    def open_new(
        self,
        text: str = "",
        *,
        scope: FactScope = "always",
        folder: str = "",
        conversation_id: str = "",
        node_id: str = "",
    ) -> None:
        """Open a new fact, with a first text, scope and folder to change; the ids say where it was said."""
        self._base, self._before = MemoryPinParams(conversation_id=conversation_id, node_id=node_id), ()
        self._open(text, scope, folder, (tr("Pin"), tr("Pin fact")))

    def open_draft(self, text: str, folders: Collection[str], conversation_id: str, names: tuple[str, str]) -> None:
        """Open a fact that stands for entries of these folders; `names` are those of the button.

        What was said in a folder is told nowhere else, unless the person chooses so.
        """
        self._base, self._before = MemoryPinParams(conversation_id=conversation_id), ()
        folder = next(iter(folders)) if len(folders) == 1 else ""
        is_about_folders = any(folders)
        self._open(text, "folder" if is_about_folders else "always", folder, names, is_draft=True)
        self._note.show_text(_OTHER_FOLDERS if is_about_folders and not folder else "")

    def open_merge(self, facts: tuple[Fact, ...]) -> None:
        """Open one fact in the place of several."""
        self._base, self._before = MemoryPinParams(), facts
        first = facts[0]
        is_same = len({(fact.scope, fact.folder) for fact in facts}) == 1
        needs_folder = not is_same and any(fact.folder for fact in facts)
        other: FactScope = "folder" if needs_folder else "always"
        scope, folder = (first.scope, first.folder) if is_same else (other, "")
        self._open(" ".join(fact.text for fact in facts), scope, folder, (tr("Merge"), tr("Merge facts")))
        self._note.show_text(_OTHER_FOLDERS if needs_folder else "")

    def reopen(self) -> None:
        """Show the form again as it was left."""
        self._on_edited()
        self.show()
        self._text.setFocus()

    def open_fact(self, fact: Fact) -> None:
        """Change this fact, or accept it with other words."""
        self._base, self._before = MemoryPinParams(id=fact.id), (fact,)
        is_pinned = fact.status == "pinned"
        names = (tr("Save"), tr("Save fact")) if is_pinned else (tr("Accept"), tr("Accept fact"))
        self._open(fact.text, fact.scope, fact.folder, names)

    def _lay_out(self) -> None:
        set_vbox(
            self,
            self._text,
            self._note,
            self.row(self._scope),
            self.row(self._folder, self._choose, stretch=self._folder),
            self.row(self._save, self._cancel),
            self._problem,
            spacing=self.theme.tokens.space_close,
        )

    def _open(
        self, text: str, scope: FactScope, folder: str, names: tuple[str, str], *, is_draft: bool = False
    ) -> None:
        self._opening += 1
        self._is_draft = is_draft
        self._note.show_text("")
        self._text.setPlainText(" ".join(plain(text).split()))
        self._folder.setText(folder)
        self._scope.setCurrentIndex(list(SCOPES).index(scope))
        self._save.setText(names[0])
        self._save.setAccessibleName(names[1])
        self.reopen()

    @property
    def _chosen_scope(self) -> FactScope:
        return list(SCOPES)[self._scope.currentIndex()]

    def _on_edited(self) -> None:
        needs_folder = self._chosen_scope == "folder"
        self._folder.setVisible(needs_folder)
        self._choose.setVisible(needs_folder)
        length = len(self._text.text)
        is_whole = bool(length) and (not needs_folder or bool(self._folder.text().strip()))
        self._save.setEnabled(is_whole and length <= MAX_FACT_LENGTH)
        too_long = tr("{n} characters; a fact has at most {maximum}. Shorten it.")
        self._problem.show_text(too_long.format(n=length, maximum=MAX_FACT_LENGTH) if length > MAX_FACT_LENGTH else "")

    def _on_choose_clicked(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, tr("Folder for the fact"), self._folder.text())
        if folder:
            self._folder.setText(folder)

    def _on_save_clicked(self) -> None:
        if not self._save.isEnabled():
            return
        scope = self._chosen_scope
        params = MemoryPinParams(
            text=self._text.text,
            scope=scope,
            folder=self._folder.text().strip() if scope == "folder" else None,
            id=self._base.id,
            conversation_id=self._base.conversation_id,
            node_id=self._base.node_id,
        )
        if self._is_draft:
            self.hide()
            self.drafted.emit(params)
            return
        self._save.setEnabled(False)  # a second press would be a second fact
        opening, before = self._opening, self._before
        refused = partial(self._on_refused, opening)
        if len(before) > 1:
            self._facts.merge(before, params, partial(self._on_merged, opening, before), refused)
        else:
            self._facts.pin(params, partial(self._on_stored, opening, before[0] if before else None), refused)

    def _on_merged(self, opening: int, before: tuple[Fact, ...], first: Fact, fact: Fact) -> None:
        if opening == self._opening:
            self.close_form()
        others = tuple(other for other in before if other.id != first.id)
        self.merged.emit((first, *others), fact)

    def _on_stored(self, opening: int, before: Fact | None, fact: Fact) -> None:
        if opening == self._opening:
            self.close_form()
        self.done.emit(before, fact)

    def _on_refused(self, opening: int, text: str) -> None:
        if opening == self._opening:
            self._save.setEnabled(True)
            self._problem.show_text(text)
        else:
            self._facts.failed.emit(text)
