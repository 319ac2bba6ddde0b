"""Sessions of other programs on this machine: found, shown, and taken in by choice."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QVBoxLayout, QWidget

from errand.client.errors import CallError
from errand.client.number_format import file_size
from errand.client.safe_text import escape_hidden_line
from errand.client.texts.imports import found_counts_text, import_text
from errand.protocol.base import EmptyParams
from errand.protocol.data import (
    DATA_FIND,
    DATA_IMPORT,
    DataFindResult,
    DataImportParams,
    FoundSessions,
)
from errand.text.translation import tr, trn
from errand.window.theme.style import check_box, push_button
from errand.window.theme.theme import Theme
from errand.window.views.settings.page import EngineCalls
from errand.window.widgets.boxes import STRETCH, hbox, set_hbox, set_vbox, vbox, widget_of
from errand.window.widgets.containers import clear_layout
from errand.window.widgets.labels import TextLabel

# Of what is below a box, to the text of the box.
_INDENT = 30


class FoundSessionsView(QWidget):
    """`content_changed` is emitted when there is something new to see; `imported` gives the results as sentences."""

    content_changed = Signal()
    imported = Signal(str)

    def __init__(self, theme: Theme, calls: EngineCalls) -> None:
        super().__init__()
        self._theme = theme
        self._calls = calls
        self._choices: list[tuple[QCheckBox, FoundSessions]] = []
        self.find_button = push_button(tr("Find sessions from other apps"))
        self._import = push_button(tr("Import"), "primary")
        self._cancel = push_button(tr("Cancel"))
        self._status = TextLabel(theme, tone="muted", wrap=True)
        self._rows = QVBoxLayout()
        self._buttons = QWidget()
        self._lay_out()
        self.find_button.clicked.connect(self._on_find)
        self._import.clicked.connect(self._on_import)
        self._cancel.clicked.connect(self._close)
        self._close()

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        self._rows.setSpacing(tokens.space_close)
        set_hbox(self._buttons, self._import, self._cancel, STRETCH, spacing=tokens.space_close)
        set_vbox(
            self, hbox(self.find_button, STRETCH), self._status, self._rows, self._buttons, spacing=tokens.space_normal
        )

    def _close(self) -> None:
        self._choices.clear()
        clear_layout(self._rows)
        self._status.hide()
        self._buttons.hide()
        self.find_button.setEnabled(True)

    def _on_find(self) -> None:
        self._close()
        self._status.show_text(tr("Searching…"))
        self.find_button.setEnabled(False)
        self._calls.spawn(self._find(), self._on_failed)

    async def _find(self) -> None:
        result = await self._calls.call(DATA_FIND, EmptyParams())
        self.find_button.setEnabled(True)
        if not result.found:
            self._status.show_text(_nothing_text(result))
        else:
            for sessions in result.found:
                self._add(sessions)
            can_take = any(choice.isEnabled() for choice, _ in self._choices)
            self._status.show_text("" if can_take else tr("Everything readable is already imported."))
            self._buttons.setVisible(can_take)
            self._import.setFocus()
        self.content_changed.emit()

    def _add(self, one: FoundSessions) -> None:
        facts = (trn("{n} session", "{n} sessions", one.sessions), found_counts_text(one), file_size(one.bytes))
        choice = check_box(f"{escape_hidden_line(one.program)} · {' · '.join(filter(None, facts))}")
        choice.setEnabled(bool(one.new or one.grown))
        choice.setChecked(choice.isEnabled())
        choice.toggled.connect(self._on_toggled)
        self._choices.append((choice, one))
        notes = [one.path]
        if one.not_looked_at:
            notes.append(trn("{n} older file not checked", "{n} older files not checked", one.not_looked_at))
        labels = [
            TextLabel(self._theme, escape_hidden_line(text), tone="muted", wrap=True)
            for text in (*notes, one.problem)
            if text
        ]
        for label in labels:
            label.setContentsMargins(_INDENT, 0, 0, 0)
        self._rows.addWidget(widget_of(vbox(choice, *labels, spacing=self._theme.tokens.space_tight)))

    def _on_toggled(self) -> None:
        self._import.setEnabled(any(choice.isChecked() for choice, _ in self._choices))

    def _on_import(self) -> None:
        chosen = [sessions for choice, sessions in self._choices if choice.isChecked()]
        self._close()
        self.find_button.setEnabled(False)
        self._calls.spawn(self._take(chosen), self._on_failed)

    async def _take(self, chosen: list[FoundSessions]) -> None:
        """Each after the other; the fault of one stops no other."""
        outcomes: list[str] = []
        for number, sessions in enumerate(chosen, 1):
            self._status.show_text(
                tr("Importing {program}… ({number} of {total})").format(
                    program=escape_hidden_line(sessions.program), number=number, total=len(chosen)
                )
            )
            try:
                done = await self._calls.call(DATA_IMPORT, DataImportParams(path=sessions.path))
            except CallError as error:
                outcomes.append(str(error))
            else:
                outcomes += import_text(done)
        self._close()
        self.find_button.setFocus()  # the button that was pressed is gone
        self.imported.emit(" ".join(outcomes))

    def _on_failed(self, text: str) -> None:
        self._close()
        self._status.show_text(text)
        self.content_changed.emit()


def _nothing_text(found: DataFindResult) -> str:
    paths = "\n".join(map(escape_hidden_line, found.searched))
    return tr("No sessions from other apps found. Searched in:\n{places}").format(places=paths)
