"""The branch switch at a fork, and the end of a branch that continues elsewhere."""

from functools import partial

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QLabel, QWidget

from errand.client.conversation.rows import BranchEndRow, BranchSwitchRow
from errand.text.translation import tr, trn
from errand.window.rows.base import RowActions, RowKind, RowView, Spacing, line_estimate
from errand.window.theme.style import push_button, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.widgets.boxes import at_top, fill, hbox, set_vbox, stretch
from errand.window.widgets.buttons import IconButton
from errand.window.widgets.containers import FlowLayout
from errand.window.widgets.labels import TextLabel

_MAX_BUTTONS = 6  # buttons, for the newest branches; the switch at the start of a branch reaches the others


class BranchSwitchView(RowView[BranchSwitchRow]):
    def __init__(self, theme: Theme, actions: RowActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        self._row: BranchSwitchRow | None = None
        self._previous = IconButton(theme, "chevron-left", tr("Previous version"))
        self._next = IconButton(theme, "chevron-right", tr("Next version"))
        self._position = TextLabel(theme, size=theme.tokens.size_small, tone="muted")
        self._compare = IconButton(theme, "columns-2", tr("Compare versions"))
        controls = (self._previous, self._position, self._next, self._compare)
        self._line = hbox(stretch(0), *controls, stretch(0), spacing=theme.tokens.space_tight)
        self.setLayout(self._line)
        self._previous.clicked.connect(self._on_previous_clicked)
        self._next.clicked.connect(self._on_next_clicked)
        self._compare.clicked.connect(self._on_compare_clicked)

    def set_row(self, row: BranchSwitchRow) -> None:
        self._row = row
        self._line.setStretch(0, 1 if row.is_user else 0)
        self._line.setStretch(5, 0 if row.is_user else 1)
        self._position.setText(f"{row.number}/{row.count}")
        label = tr("Version {number} of {total}").format(number=row.number, total=row.count)
        self._position.setAccessibleName(label)
        set_tool_tip(self._position, label)
        self.setAccessibleName(label)
        self._compare.setVisible(len(row.node_ids) > 1)
        self._show_target(self._previous, row.previous_id, tr("Previous version"))
        self._show_target(self._next, row.next_id, tr("Next version"))

    def _show_target(self, button: IconButton, node_id: str | None, name: str) -> None:
        assert self._row is not None
        why = self.row_actions.branches.locked if self._row.locked else ""
        set_tool_tip(button, why or name)
        button.setAccessibleDescription(why)
        had_focus = button.hasFocus()
        button.setEnabled(node_id is not None and not self._row.locked)
        if had_focus and not button.isEnabled():  # otherwise no widget would have the focus
            other = self._next if button is self._previous else self._previous
            other.setEnabled(not self._row.locked)
            other.setFocus()

    def _on_previous_clicked(self) -> None:
        assert self._row is not None
        if self._row.previous_id is not None:
            self._switch(self._row.previous_id)

    def _on_next_clicked(self) -> None:
        assert self._row is not None
        if self._row.next_id is not None:
            self._switch(self._row.next_id)

    def _on_compare_clicked(self) -> None:
        assert self._row is not None
        self.row_actions.branches.compare(self._row.node_ids)

    def _switch(self, node_id: str) -> None:
        self.resized.emit()  # the rows below change: keeps the scroll position, also when scrolled to the end
        self.row_actions.branches.switch(node_id)


class BranchEndView(RowView[BranchEndRow]):
    def __init__(self, theme: Theme, actions: RowActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        tokens = theme.tokens
        self._icon = QLabel()
        self._label = TextLabel(theme, tone="muted")
        self._label.setWordWrap(True)
        self._buttons = FlowLayout(tokens.space_close)
        space = tokens.space_close
        head = hbox(at_top(self._icon), fill(self._label), spacing=space)
        set_vbox(self, head, self._buttons, spacing=space, margins=(space, 0, 0, 0))

    def set_row(self, row: BranchEndRow) -> None:
        side = self.theme.tokens.icon_small
        self._icon.setPixmap(self.theme.icon("git-branch", "muted").pixmap(QSize(side, side), self.devicePixelRatioF()))
        self._label.setText(branch_end_text(row))
        self._clear()
        first = max(0, len(row.child_ids) - _MAX_BUTTONS)
        for number, node_id in enumerate(row.child_ids[first:], start=first + 1):
            button = push_button(
                tr("Go back") if len(row.child_ids) == 1 else tr("Branch {number}").format(number=number)
            )
            button.clicked.connect(partial(self.row_actions.branches.switch, node_id))
            self._buttons.addWidget(button)
            button.show()  # otherwise Qt shows it later, and the measured height lacks it
        if len(row.child_ids) > 1:
            compare = push_button(tr("Compare"), "quiet")
            compare.clicked.connect(partial(self.row_actions.branches.compare, row.child_ids))
            self._buttons.addWidget(compare)
            compare.show()

    def _clear(self) -> None:
        while (item := self._buttons.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()


def branch_end_text(row: BranchEndRow) -> str:
    count = len(row.child_ids)
    if count == 1:
        return tr("You're at an earlier point in the conversation. Your next message creates a new branch.")
    return trn(
        "{n} branch continues from here. Your next message creates another one.",
        "{n} branches continue from here. Your next message creates another one.",
        count,
    )


BRANCH_SWITCH = RowKind(
    BranchSwitchRow,
    BranchSwitchView,
    spacing=lambda row: Spacing.SWITCH_BELOW if row.is_user else Spacing.SWITCH_ABOVE,
    estimate=line_estimate,
)

BRANCH_END = RowKind(
    BranchEndRow,
    BranchEndView,
    spacing=lambda row: Spacing.BRANCH_END,
    estimate=lambda row, width, tokens: 4 * tokens.space_far,
)
