"""The row of a tool call: one line that expands to its card; that of a sub-agent has buttons."""

from PySide6.QtCore import QTimer
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QMenu, QVBoxLayout, QWidget

from errand.client.conversation.rows import ToolCallRow
from errand.client.safe_text import escape_hidden_line, output_text
from errand.protocol.tasks.task import Task
from errand.text.translation import tr
from errand.window.rows.base import RowActions, RowKind, RowView, Spacing, line_estimate
from errand.window.rows.disclosure import DisclosureButton, hit_count_parts
from errand.window.rows.markdown import code_fence
from errand.window.rows.message_actions import add_forget_entry
from errand.window.rows.tools.card import ToolCallCard, arguments_text, full_output, result_diff
from errand.window.rows.tools.line import line_of
from errand.window.theme.style import push_button
from errand.window.theme.theme import Theme
from errand.window.widgets.boxes import set_hbox
from errand.window.widgets.buttons import IconButton
from errand.window.widgets.diff.lines import diff_lines

_TICK_MS = 1000


class ToolCallView(RowView[ToolCallRow]):
    def __init__(self, theme: Theme, actions: RowActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        self._row: ToolCallRow | None = None
        self._is_open = False
        self._hit_count = 0
        self._line = DisclosureButton(theme, self)
        self._line.clicked.connect(self._on_clicked)
        self._card: ToolCallCard | None = None
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(theme.tokens.space_tight)
        self._head = QHBoxLayout()
        self._head.setSpacing(theme.tokens.space_tight)
        self._head.addWidget(self._line, 1)
        self._column.addLayout(self._head)
        self._sub_agent: SubAgentButtons | None = None
        self._clock: QTimer | None = None

    def set_open(self, is_open: bool) -> None:
        self._is_open = is_open
        self._line.setChecked(is_open)

    def set_row(self, row: ToolCallRow) -> None:
        self._row, self._hit_count = row, 0
        self._show_line(row)
        self._show_card()
        if row.sub_agent is not None and self._sub_agent is None:
            self._sub_agent = SubAgentButtons(self.theme, self.row_actions)
            self._head.addWidget(self._sub_agent)
        if self._sub_agent is not None:
            self._sub_agent.show_task(row.sub_agent)

    def show_hit_count(self, count: int) -> None:
        if count != self._hit_count:
            self._hit_count = count
            if self._row is not None:
                self._show_line(self._row)

    def fill_menu(self, menu: QMenu) -> None:
        """The call goes with its result; without one it may still be at work."""
        row = self._row
        if row is not None and row.result_id and row.result is not None and "forgotten" not in row.result.marks:
            add_forget_entry(menu, row.result_id, self.row_actions)

    def _show_line(self, row: ToolCallRow) -> None:
        icon, tint, pieces = line_of(row)
        self._line.show_line(icon, tint, [*pieces, *hit_count_parts(self._hit_count)], can_open=True)
        self._run_clock()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._on_tick()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._run_clock()

    def _run_clock(self) -> None:
        """The line of a running call shows its time; the clock runs only while it is visible."""
        row = self._row
        is_counting = row is not None and row.result is None and row.state == "running" and row.progress is not None
        if not (is_counting and self.isVisible()):
            if self._clock is not None:
                self._clock.stop()
            return
        if self._clock is None:
            self._clock = QTimer(self)
            self._clock.setInterval(_TICK_MS)
            self._clock.timeout.connect(self._on_tick)
        if not self._clock.isActive():
            self._clock.start()

    def _on_tick(self) -> None:
        if self._row is not None:
            self._show_line(self._row)

    def _on_clicked(self, is_checked: bool) -> None:
        self._is_open = is_checked
        self._show_card()
        self.opened.emit(is_checked)
        self.resized.emit()

    def _show_card(self) -> None:
        if self._is_open and self._row is not None:
            if self._card is None:
                self._card = ToolCallCard(self.theme, self.row_actions, self)
                self._column.addWidget(self._card)
            self._card.show_row(self._row)
        if self._card is not None:
            self._card.setVisible(self._is_open)


class SubAgentButtons(QWidget):
    """Opens the branch of a sub-agent, and stops it alone."""

    def __init__(self, theme: Theme, actions: RowActions) -> None:
        super().__init__()
        self._actions = actions
        self._task: Task | None = None
        self._stop = IconButton(theme, "circle-stop", tr("Stop sub-agent"))
        self._open = push_button(tr("Open"), "quiet")
        set_hbox(self, self._stop, self._open, spacing=theme.tokens.space_tight)
        self._stop.clicked.connect(self._on_stop_clicked)
        self._open.clicked.connect(self._on_open_clicked)

    def show_task(self, task: Task | None) -> None:
        self._task = task
        self.setVisible(task is not None)
        if task is not None:
            title = escape_hidden_line(task.origin.title)
            self._stop.set_icon_and_name("circle-stop", tr("Stop sub-agent “{title}”").format(title=title))
            self._stop.setVisible(task.outcome.ended_at is None and task.activity.status != "interrupted")
            self._stop.setEnabled(not task.activity.stopping)
            self._open.setAccessibleName(tr("Open branch of sub-agent “{title}”").format(title=title))

    def _on_stop_clicked(self) -> None:
        if self._task is not None:
            self._actions.stop_task(self._task.id)

    def _on_open_clicked(self) -> None:
        if self._task is not None:
            self._actions.open_agent(self._task.agent_id)


def _markdown(row: ToolCallRow, is_open: bool) -> str:
    line = " ".join(piece.text for piece in line_of(row)[2])
    if not is_open:
        return line
    diff, output = result_diff(row), _output(row)
    body = code_fence(diff, "diff") if diff else code_fence(output) if output.strip() else ""
    return f"{line}\n\n{body}".rstrip()


def _text(row: ToolCallRow) -> str:
    diff = result_diff(row)
    if diff:
        return "\n".join(line.text for line in diff_lines(diff))
    return f"{arguments_text(row.call)[0]}\n{_output(row)}"


def _output(row: ToolCallRow) -> str:
    return output_text(full_output(row))


TOOL_CALL = RowKind(
    ToolCallRow,
    ToolCallView,
    spacing=lambda row: Spacing.ACTIVITY,
    estimate=line_estimate,
    markdown=_markdown,
    text=_text,
)
