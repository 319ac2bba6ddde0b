"""The line above a diff: the file, how many lines were added and removed, and a button that copies it as a patch."""

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QWidget

from errand.client.safe_text import escape_hidden_line
from errand.text.translation import grouped, tr, trn
from errand.window.theme.theme import Theme
from errand.window.widgets.buttons import CopyButton
from errand.window.widgets.diff.lines import diff_lines, diff_name, is_complete, line_counts
from errand.window.widgets.labels import ElidedLabel, TextLabel

_COPY = tr("Copy as patch")


class DiffHeadView(QWidget):
    """`copy` puts the patch on the clipboard. More controls can be added to `row`."""

    def __init__(self, theme: Theme, copy: Callable[[], None]) -> None:
        super().__init__()
        small = theme.tokens.size_small
        self._name = ElidedLabel(theme, size=small, bold=True, mode=Qt.TextElideMode.ElideMiddle)
        self._added = TextLabel(theme, size=small, tone="done")
        self._removed = TextLabel(theme, size=small, tone="failed")
        self._copy = CopyButton(theme, _COPY, copy)
        self.row = QHBoxLayout(self)
        self.row.setContentsMargins(0, 0, 0, 0)
        self.row.setSpacing(theme.tokens.space_close)
        self.row.addWidget(self._name)
        self.row.addWidget(self._added)
        self.row.addWidget(self._removed)
        self.row.addStretch(1)
        self.row.addWidget(self._copy)

    def show_diff(self, diff: str) -> None:
        """Show what the diff of one file says of it."""
        lines = diff_lines(diff)
        self.show_file(diff_name(diff), *line_counts(lines), can_copy=is_complete(lines) and bool(diff_name(diff)))

    def show_file(self, name: str, added: int, removed: int, *, can_copy: bool) -> None:
        """`name` is shown with hidden characters escaped."""
        self._name.set_text(escape_hidden_line(name))
        for label, sign, number, accessible_name in (
            (self._added, "+", added, trn("{n} line added", "{n} lines added", added)),
            (self._removed, "−", removed, trn("{n} line removed", "{n} lines removed", removed)),
        ):
            label.setText(f"{sign}{grouped(number)}")
            label.setAccessibleName(accessible_name)
            label.setVisible(number > 0)
        self._copy.setVisible(can_copy)
