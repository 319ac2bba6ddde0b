"""The form that pins a fact or changes one: its sentence, and where it holds."""

from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFileDialog

from errand.client.safe_text import plain
from errand.protocol.memory import MAX_FACT_LENGTH, Fact, FactScope, MemoryPinParams
from errand.text.translation import tr
from errand.window.stores.memory.facts import FactStore
from errand.window.theme.style import push_button
from errand.window.theme.theme import Theme
from errand.window.widgets.boxes import set_vbox
from errand.window.widgets.forms.combo_box import ComboBox
from errand.window.widgets.forms.form import line_edit
from errand.window.widgets.forms.in_place_form import InPlaceFormView
from errand.window.widgets.labels import TextLabel

SCOPES: dict[FactScope, str] = {"always": tr("Always"), "me": tr("About me"), "folder": tr("In a folder")}


class FactFormView(InPlaceFormView):
    """Hidden until `open_new` or `open_fact`. `done` gives the fact before, None for a new one, and as it is stored."""

    done = Signal(object, object)

    def __init__(self, theme: Theme, facts: FactStore) -> None:
        super().__init__(theme)
        self._facts = facts
        self._base = MemoryPinParams()  # what the fields do not have: the id, or where it was said
        self._before: Fact | None = None
        self._opening = 0  # an answer to what was sent before may arrive when something else is open
        hint = tr("For example: Answer in British English.")
        self._text = line_edit(tr("Fact"), hint, max_length=MAX_FACT_LENGTH)
        self._scope = ComboBox(tuple(SCOPES.values()), name=tr("Where the fact applies"))
        self._folder = line_edit(tr("Folder for the fact"), "/home/…")
        self._choose = push_button(tr("Choose…"), name=tr("Choose folder for the fact"))
        self._save, self._cancel = push_button(tr("Pin"), "primary"), push_button(tr("Cancel"), "quiet")
        self._problem = TextLabel(theme, tone="failed", wrap=True)
        self._lay_out()
        self._text.textChanged.connect(self._on_edited)
        self._folder.textChanged.connect(self._on_edited)
        self._scope.currentIndexChanged.connect(self._on_edited)
        self._text.returnPressed.connect(self._on_save_clicked)
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
        self._base, self._before = MemoryPinParams(conversation_id=conversation_id, node_id=node_id), None
        self._open(text, scope, folder, (tr("Pin"), tr("Pin fact")))

    def open_fact(self, fact: Fact) -> None:
        """Change this fact, or accept it with other words."""
        self._base, self._before = MemoryPinParams(id=fact.id), fact
        is_pinned = fact.status == "pinned"
        names = (tr("Save"), tr("Save fact")) if is_pinned else (tr("Accept"), tr("Accept fact"))
        self._open(fact.text, fact.scope, fact.folder, names)

    def _lay_out(self) -> None:
        set_vbox(
            self,
            self._text,
            self.row(self._scope, self._folder, self._choose, stretch=self._folder),
            self.row(self._save, self._cancel),
            self._problem,
            spacing=self.theme.tokens.space_close,
        )

    def _open(self, text: str, scope: FactScope, folder: str, names: tuple[str, str]) -> None:
        self._opening += 1
        self._text.setText(" ".join(plain(text).split())[:MAX_FACT_LENGTH])
        self._text.setCursorPosition(0)
        self._folder.setText(folder)
        self._scope.setCurrentIndex(list(SCOPES).index(scope))
        self._save.setText(names[0])
        self._save.setAccessibleName(names[1])
        self._on_edited()
        self.show()
        self._text.setFocus()

    @property
    def _chosen_scope(self) -> FactScope:
        return list(SCOPES)[self._scope.currentIndex()]

    def _on_edited(self) -> None:
        needs_folder = self._chosen_scope == "folder"
        self._folder.setVisible(needs_folder)
        self._choose.setVisible(needs_folder)
        is_whole = bool(self._text.text().strip()) and (not needs_folder or bool(self._folder.text().strip()))
        self._save.setEnabled(is_whole)
        self._problem.show_text("")

    def _on_choose_clicked(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, tr("Folder for the fact"), self._folder.text())
        if folder:
            self._folder.setText(folder)

    def _on_save_clicked(self) -> None:
        if not self._save.isEnabled():
            return
        scope = self._chosen_scope
        params = MemoryPinParams(
            text=self._text.text().strip(),
            scope=scope,
            folder=self._folder.text().strip() if scope == "folder" else None,
            id=self._base.id,
            conversation_id=self._base.conversation_id,
            node_id=self._base.node_id,
        )
        self._save.setEnabled(False)  # a second press would be a second fact
        opening = self._opening
        self._facts.pin(params, partial(self._on_stored, opening, self._before), partial(self._on_refused, opening))

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
