"""The line above the diff of a file: its name and counts, which change is at the cursor, undo, redo, open, copy."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QMenu, QWidget

from errand.protocol.changes import ChangedFile, FileDiff, UndoneHunk
from errand.text.translation import tr
from errand.window.theme.style import push_button, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.views.review.review_head import can_redo, can_undo
from errand.window.widgets.boxes import at_left, set_vbox
from errand.window.widgets.buttons import IconButton
from errand.window.widgets.diff.head import DiffHeadView
from errand.window.widgets.labels import TextLabel


class FileHeadView(QWidget):
    """Emits `hunk_redo_requested` with the id of the change that undid a hunk."""

    open_requested = Signal()
    patch_requested = Signal()
    undo_requested = Signal()
    redo_requested = Signal()
    hunk_redo_requested = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._file: ChangedFile | None = None
        self._head = DiffHeadView(theme, self.patch_requested.emit)
        self._position = TextLabel(theme, tone="muted", size=theme.tokens.size_small)
        set_tool_tip(self._position, tr("J or F7: next change. K or Shift+F7: previous change."))
        self._redo_hunk = push_button(tr("Redo change"), "quiet")
        self._undo, self._redo = (
            IconButton(theme, "undo-2", tr("Undo file")),
            IconButton(theme, "redo-2", tr("Redo file")),
        )
        self._open = IconButton(theme, "external-link", tr("Open in editor"))
        self._redo_hunk.clicked.connect(self._on_redo_hunk)
        self._undo.clicked.connect(self.undo_requested)
        self._redo.clicked.connect(self.redo_requested)
        self._open.clicked.connect(self.open_requested)
        for control in (self._position, self._undo, self._redo, self._open):
            self._head.row.insertWidget(self._head.row.count() - 1, control)
        tokens = theme.tokens
        set_vbox(
            self,
            self._head,
            at_left(self._redo_hunk),
            spacing=0,
            margins=(tokens.space_normal, 0, tokens.space_tight, 0),
        )

    def show_file(self, file: ChangedFile, step: int | None) -> None:
        self._file = file
        is_text = bool(file.added or file.removed or file.renamed_from or file.renamed_to)
        self._head.show_file(file.name, file.added, file.removed, can_copy=is_text)
        self._undo.setVisible(can_undo(file, step))
        self._redo.setVisible(can_redo(file, step))
        self._redo_hunk.setVisible(step is None and bool(file.undone_hunks))
        self._open.setEnabled(not file.is_deleted)

    def show_counts(self, diff: FileDiff | None) -> None:
        """Show the line counts of the visible diff, which may be the diff of one step."""
        if self._file is not None and diff is not None:
            can_copy = bool(diff.hunks or diff.renamed_from or self._file.renamed_to)
            self._head.show_file(self._file.name, diff.added, diff.removed, can_copy=can_copy)

    def show_position(self, number: int, changes: int) -> None:
        is_one_of = number > 0 and changes > 1
        figures = {"number": number, "changes": changes}
        self._position.setText(tr("{number} of {changes}").format(**figures) if is_one_of else "")
        self._position.setAccessibleName(tr("Change {number} of {changes}").format(**figures) if is_one_of else "")

    def _on_redo_hunk(self) -> None:
        hunks = self._file.undone_hunks if self._file is not None else ()
        if len(hunks) == 1:
            self.hunk_redo_requested.emit(hunks[0].change_id)
        elif hunks:
            self._open_menu(hunks)

    def _open_menu(self, hunks: tuple[UndoneHunk, ...]) -> None:
        """The one that was undone last comes first."""
        menu = QMenu(self)
        for hunk in reversed(hunks):
            entry = menu.addAction(f"{tr('Redo change')}  +{hunk.added} −{hunk.removed}")
            entry.triggered.connect(lambda _=False, one=hunk: self.hunk_redo_requested.emit(one.change_id))
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(self._redo_hunk.mapToGlobal(self._redo_hunk.rect().bottomLeft()))
