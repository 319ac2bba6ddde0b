"""Personalities: list, create, duplicate, import, export."""

from functools import partial
from pathlib import Path
from uuid import uuid4

import msgspec
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from errand.client import personality_file
from errand.client.personality_file import free_name, new_personality
from errand.client.texts.task_options import THINKING_LEVELS
from errand.protocol.agents import Personality
from errand.text.translation import decimal, tr
from errand.window.stores.catalog import ModelStore, PersonalityStore
from errand.window.theme.style import push_button
from errand.window.theme.theme import Theme
from errand.window.views.settings.page import SettingsPageView
from errand.window.views.settings.personality_editor import PersonalityEditorView
from errand.window.widgets.agent_dot import AgentDotView
from errand.window.widgets.boxes import STRETCH, fill, hbox, set_hbox, vbox
from errand.window.widgets.labels import ElidedLabel, TextLabel
from errand.window.widgets.list_column import ListColumn

_TEXT = tr("A personality is an agent's prompt, model, tools and thinking level. Choose one when you start a task.")
_FILES = tr("Personalities (*.json)")


class PersonalityRowView(QWidget):
    edited = Signal()
    duplicated = Signal()

    def __init__(self, theme: Theme, personality: Personality, shipped: Personality | None) -> None:
        super().__init__()
        tokens = theme.tokens
        edit, duplicate = (
            push_button(tr("Edit"), name=tr("Edit {name}").format(name=personality.name)),
            push_button(tr("Duplicate"), name=tr("Duplicate {name}").format(name=personality.name)),
        )
        edit.clicked.connect(self._on_edited)
        duplicate.clicked.connect(self._on_duplicated)
        labels: list[QWidget] = [TextLabel(theme, personality.name, bold=True)]
        if personality.color:
            labels.insert(0, AgentDotView(theme, personality.color))
        if shipped is not None:
            origin = tr("built-in") if shipped == personality else tr("built-in · edited")
            labels.append(TextLabel(theme, origin, tone="muted"))
        name = hbox(*labels, STRETCH, spacing=tokens.space_close)
        texts = vbox(name, ElidedLabel(theme, personality_summary(personality), tone="muted"), spacing=2)
        set_hbox(self, fill(texts), edit, duplicate, spacing=tokens.space_close)

    def _on_edited(self) -> None:
        self.edited.emit()

    def _on_duplicated(self) -> None:
        self.duplicated.emit()


def personality_summary(personality: Personality) -> str:
    """One line: model, tools, thinking, and the beginning of the prompt."""
    tools = ", ".join(personality.tools) if personality.tools else tr("all tools")
    thinking = (
        tr("thinking: {level}").format(level=THINKING_LEVELS[personality.thinking_level])
        if personality.thinking_level != "off"
        else ""
    )
    temperature = ""
    if personality.temperature is not None:
        temperature = tr("temperature {degree}").format(degree=decimal(f"{personality.temperature:g}"))
    prompt = " ".join(personality.system_prompt.split()) or tr("default prompt")
    return " · ".join(
        part for part in (personality.model or tr("default model"), tools, thinking, temperature, prompt) if part
    )


class PersonalitiesPageView(SettingsPageView):
    """The list, or the editor of one personality; the editor keeps its state while other pages are shown.

    `providers_requested` asks for the page where models are set up.
    """

    providers_requested = Signal()

    def __init__(self, theme: Theme, store: PersonalityStore, models: ModelStore) -> None:
        super().__init__(theme, tr("Personalities"), _TEXT)
        self._store = store
        self._editing = ""
        self._actions = QWidget()
        self._editor = PersonalityEditorView(theme, models)
        self._lay_out()
        self._column = ListColumn(theme.tokens.space_normal, self._row)
        self.rows.addLayout(self._column)
        self._editor.hide()
        self._editor.save_requested.connect(self._on_save_requested)
        self._editor.back_requested.connect(self._show_list)
        self._editor.deleted.connect(self._on_deleted)
        self._editor.exported.connect(self._on_exported)
        self._editor.providers_requested.connect(self.providers_requested)
        store.changed.connect(self._on_changed)
        self._on_changed()

    def _lay_out(self) -> None:
        tokens = self.theme.tokens
        new, import_button = (
            push_button(tr("New…"), "primary", name=tr("New personality")),
            push_button(tr("Import…"), name=tr("Import personality")),
        )
        new.clicked.connect(self._on_new)
        import_button.clicked.connect(self._on_import)
        set_hbox(self._actions, new, import_button, STRETCH, spacing=tokens.space_close)
        self.top.addWidget(self._actions)

    def _show_list(self) -> None:
        self._editing = ""
        self.rows.removeWidget(self._editor)
        self._editor.setParent(None)
        self._actions.show()
        self._on_changed()

    def _edit(self, personality: Personality, *, is_new: bool = False) -> None:
        self._editing = personality.id
        self.banner.hide()
        self._actions.hide()
        self._column.clear()
        self.rows.addWidget(self._editor)
        self._editor.show()
        self._editor.edit(personality, self._shipped(personality.id), self._store.tools, is_new=is_new)

    def _on_changed(self) -> None:
        if self._editing:
            return  # keep the edits; saving them replaces what another client saved meanwhile
        self._column.show_items({personality.id: personality for personality in self._store.all})

    def _row(self, personality: Personality) -> PersonalityRowView:
        row = PersonalityRowView(self.theme, personality, self._shipped(personality.id))
        row.edited.connect(partial(self._edit, personality))
        row.duplicated.connect(partial(self._on_duplicated, personality))
        return row

    def _shipped(self, personality_id: str) -> Personality | None:
        return next((personality for personality in self._store.shipped if personality.id == personality_id), None)

    def _on_new(self) -> None:
        name = free_name(tr("New personality"), self._store.all)
        self._edit(Personality(id=uuid4().hex, name=name, system_prompt=""), is_new=True)

    def _on_duplicated(self, personality: Personality) -> None:
        name = free_name(tr("{name} copy").format(name=personality.name), self._store.all)
        self._edit(msgspec.structs.replace(personality, id=uuid4().hex, name=name), is_new=True)

    def _on_save_requested(self, personality: Personality) -> None:
        self._store.save(personality, self._show_list, self._editor.problem.show_text)

    def _on_deleted(self) -> None:
        self._store.delete(self._editing, self._show_list, self._editor.problem.show_text)

    def _on_import(self) -> None:
        dialog = QFileDialog(self, tr("Import personality"), str(Path.home()), _FILES)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(self.import_file)
        dialog.open()

    def import_file(self, path: str) -> None:
        """Show the content of a file in the editor, to save or discard; it becomes a new personality with a new id."""
        try:
            imported = new_personality(personality_file.read(Path(path)), self._store.all, self._store.tools)
        except personality_file.NotAPersonality as error:
            self.show_failure(str(error))
            return
        self._edit(imported.personality, is_new=True)
        if imported.left_out:
            tools = ", ".join(imported.left_out)
            self.banner.show_message(tr("Unknown tools were left out: {tools}.").format(tools=tools), "info")

    def _on_exported(self, personality: Personality) -> None:
        dialog = QFileDialog(self, tr("Export personality"), str(Path.home()), _FILES)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.selectFile(f"{personality.name}.json".replace("/", "-"))
        dialog.fileSelected.connect(partial(self._write, personality))
        dialog.open()

    def _write(self, personality: Personality, path: str) -> None:
        try:
            personality_file.write(Path(path), personality, overwrite=True)  # the dialog has asked about overwriting
        except OSError as error:
            text = tr("Can't write {path}: {error}. Choose another location.")
            self.show_failure(text.format(path=path, error=error.strerror))
        else:
            self.banner.show_message(tr("Exported {name} to {path}.").format(name=personality.name, path=path), "done")
