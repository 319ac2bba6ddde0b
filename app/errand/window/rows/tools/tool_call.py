"""A tool call: one line that expands to arguments, output and diff."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from textwrap import indent

from PySide6.QtCore import QTimer, QUrl
from PySide6.QtGui import QHideEvent, QPainter, QPaintEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QMenu, QVBoxLayout, QWidget

from errand.client.display_text import content_of, tool_activity
from errand.client.number_format import duration, money, running_time
from errand.client.patch import patch_of_diff
from errand.client.safe_text import escape_hidden, escape_hidden_line, output_text
from errand.protocol.base import JsonValue
from errand.protocol.blocks import CallDisplay, ToolCallBlock, ToolIcon, ToolResultBlock
from errand.protocol.tasks import CallProgress, Task
from errand.translation import tr, trn
from errand.window.rows.asks.ask_card import outcome_text, settled_words
from errand.window.rows.base import RowActions, RowKind, RowView, Spacing, line_estimate
from errand.window.rows.code_view import CodeView, DiffView
from errand.window.rows.disclosure import DisclosureButton, LinePart, hit_count_parts
from errand.window.rows.markdown import code_fence
from errand.window.rows.message_actions import add_forget_entry
from errand.window.rows.row import ToolCallRow
from errand.window.theme.style import paint_rounded, push_button, set_style
from errand.window.theme.theme import Theme
from errand.window.widgets.buttons import CopyButton, IconButton, ShortcutToolTip
from errand.window.widgets.diff_head import DiffHeadView
from errand.window.widgets.diff_lines import diff_lines, diff_name
from errand.window.widgets.labels import TextLabel, one_line

TOOL_ICONS: dict[ToolIcon, str] = {
    "tool": "wrench",
    "command": "terminal",
    "file": "file-text",
    "new_file": "file-plus",
    "changed_file": "file-pen",
    "folder": "folder",
    "search": "text-search",
    "page": "globe",
    "question": "circle-question-mark",
    "message": "message-square",
    "completion": "flag",
    "plan": "list-checks",
    "sub_agent": "git-branch",
    "memory": "pin",
}

_MAX_LINES = 20
# Short output is appended to; of longer output the end is rendered again each time.
_MAX_SHOWN = 16_000
_LAST_LINES = 200

_TICK_MS = 1000

_SUMMARY = 90  # characters of the result shown in the line


def _arguments_text(call: ToolCallBlock) -> tuple[str, str]:
    """All arguments of the call, and their language."""
    if call.invalid is not None:
        return escape_hidden(call.invalid), ""
    if call.display.language:
        return escape_hidden(content_of(call)), call.display.language
    if any(isinstance(value, str) and "\n" in value for value in call.arguments.values()):
        return escape_hidden("\n".join(map(_argument, *zip(*call.arguments.items(), strict=True)))), "yaml"
    return escape_hidden(json.dumps(call.arguments, indent=2, ensure_ascii=False)), "json"


def _argument(name: str, value: JsonValue) -> str:
    """A text of several lines as it is, anything else as JSON; together the lines are YAML."""
    if isinstance(value, str) and "\n" in value:
        return f"{name}: |\n{indent(value, '  ')}"
    return f"{name}: {json.dumps(value, ensure_ascii=False)}"


class ToolCallCard(QWidget):
    def __init__(self, theme: Theme, actions: RowActions, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._actions = actions
        tokens = theme.tokens
        self._arguments = CodeView(theme, tr("Arguments"), most_lines=_MAX_LINES)
        self._output = CodeView(theme, tr("Output"), most_lines=_MAX_LINES, follows=True, has_links=True)
        self._output.link.connect(actions.open_link)
        self._full_output = ""
        self._file = ""
        self._diff = DiffView(theme, most_lines=2 * _MAX_LINES)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(tokens.space_normal, tokens.space_close, tokens.space_close, tokens.space_normal)
        layout.setSpacing(tokens.space_tight)
        self._truncated_note = QLabel(tr("Only the end is shown. Copy takes everything."))
        self._open_file = push_button(tr("Show full output"), "quiet")
        self._open_file.clicked.connect(self._on_open_file)
        self._settled = TextLabel(theme, size=tokens.size_small, tone="muted", wrap=True)
        layout.addWidget(self._settled)
        self._arguments_head = self._add(layout, tr("Arguments"), self._arguments)
        self._output_head = self._add(layout, tr("Output"), self._output, copy=self._copy_output)
        self._diff_text = ""
        self._task_id = ""
        self._diff_head = DiffHeadView(theme, self._copy_patch)
        self._review = IconButton(theme, "file-diff", tr("Open in the review"))
        ShortcutToolTip(self._review, tr("Open in the review"), "review")
        self._review.clicked.connect(self._on_review)
        self._diff_head.row.addWidget(self._review)
        actions.changes.changed.connect(self._show_review)
        layout.addWidget(self._diff_head)
        layout.addWidget(self._diff)

    def show_row(self, row: ToolCallRow) -> None:
        diff = result_diff(row)
        self._settled.setVisible(bool(row.settled))
        self._settled.setText("\n".join(map(outcome_text, row.settled)))
        # The diff contains everything that the arguments say.
        self._arguments.setVisible(not diff)
        self._arguments_head.setVisible(not diff)
        if not diff:
            self._arguments.show_code(*_arguments_text(row.call))
        self._diff.setVisible(bool(diff))
        self._diff_head.setVisible(bool(diff))
        if diff:
            self._diff_text = diff
            self._diff_head.show_diff(diff)
            self._diff.show_lines(diff_lines(diff))
        self._task_id = row.node.task_id or ""
        self._show_review()
        self._full_output = "" if diff else _whole_output(row)
        self._show_output(output_text(_last_lines(self._full_output)).rstrip("\n"), is_finished=row.result is not None)
        self._file = _output_file(row)
        self._open_file.setVisible(bool(self._file))

    def _show_output(self, output: str, *, is_finished: bool) -> None:
        self._output.setVisible(bool(output))
        self._output_head.setVisible(bool(output))
        self._truncated_note.setVisible(len(self._full_output) > _MAX_SHOWN)
        if output:
            self._output.show_code(output, "", is_finished=is_finished)

    def _copy_patch(self) -> None:
        self._actions.copy(patch_of_diff(self._diff_text))

    def _show_review(self) -> None:
        self._review.setVisible(self._actions.changes.count(self._task_id) > 0)

    def _on_review(self) -> None:
        self._actions.changes.review(self._task_id, diff_name(self._diff_text))

    def _copy_output(self) -> None:
        self._actions.copy(output_text(self._full_output).rstrip("\n"))

    def _on_open_file(self) -> None:
        self._actions.open_link(QUrl.fromLocalFile(self._file).toString())

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = self._theme.tokens
        paint_rounded(QPainter(self), self.rect(), tokens.radius_card, fill=tokens.code)

    def _add(self, layout: QVBoxLayout, title: str, view: CodeView, copy: Callable[[], None] | None = None) -> QWidget:
        """Add a part with a title and a copy button; returns the heading."""
        head = QWidget()
        row = QHBoxLayout(head)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(self._theme.tokens.space_close)
        for label in (QLabel(title), *((self._truncated_note,) if view is self._output else ())):
            label.setFont(self._theme.font(self._theme.tokens.size_small))
            set_style(label, "tone", "muted")
            row.addWidget(label)
        row.addStretch(1)
        if view is self._output:
            row.addWidget(self._open_file)
        name = tr("Copy output") if view is self._output else tr("Copy arguments")
        row.addWidget(CopyButton(self._theme, name, copy or (lambda: self._actions.copy(view.toPlainText()))))
        layout.addWidget(head)
        layout.addWidget(view)
        return head


def _whole_output(row: ToolCallRow) -> str:
    """Of a sub-agent that has ended what it reported, also before the calls beside it are done."""
    if row.result is not None:
        return row.result.text
    task = row.sub_agent
    report = task.summary or task.error or "" if task is not None and task.ended_at is not None else ""
    return row.output or report


def _last_lines(output: str) -> str:
    if len(output) <= _MAX_SHOWN:
        return output
    return "\n".join(output[-_MAX_SHOWN:].splitlines()[1:][-_LAST_LINES:])


def _output_file(row: ToolCallRow) -> str:
    """The path of an output that was too long or not text; otherwise empty."""
    return row.result.facts.output_file if row.result and row.result.facts else ""


def result_diff(row: ToolCallRow) -> str:
    """The file change made by the call, as a unified diff; empty if there is none."""
    return row.result.facts.diff if row.result and row.result.facts else ""


class SubAgentButtons(QWidget):
    """Opens the branch of a sub-agent, and stops it alone."""

    def __init__(self, theme: Theme, actions: RowActions) -> None:
        super().__init__()
        self._actions = actions
        self._task: Task | None = None
        self._stop = IconButton(theme, "circle-stop", tr("Stop sub-agent"))
        self._open = push_button(tr("Open"), "quiet")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(theme.tokens.space_tight)
        row.addWidget(self._stop)
        row.addWidget(self._open)
        self._stop.clicked.connect(self._on_stop_clicked)
        self._open.clicked.connect(self._on_open_clicked)

    def show_task(self, task: Task | None) -> None:
        self._task = task
        self.setVisible(task is not None)
        if task is not None:
            title = escape_hidden_line(task.title)
            self._stop.set_icon_and_name("circle-stop", tr("Stop sub-agent “{title}”").format(title=title))
            self._stop.setVisible(task.ended_at is None and task.status != "interrupted")
            self._stop.setEnabled(not task.stopping)
            self._open.setAccessibleName(tr("Open branch of sub-agent “{title}”").format(title=title))

    def _on_stop_clicked(self) -> None:
        if self._task is not None:
            self._actions.stop_task(self._task.id)

    def _on_open_clicked(self) -> None:
        if self._task is not None:
            self._actions.open_agent(self._task.agent_id)


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
        icon, tint, pieces = _line_of(row)
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


def _line_of(row: ToolCallRow) -> tuple[str, str, list[LinePart]]:
    """Icon, its colour, and the parts of the line: `ran make test · 12 passed · 1.2 s`."""
    display, result = row.call.display, row.result
    icon, target = TOOL_ICONS[display.icon], _target(display)
    is_running, done = escape_hidden_line(tr(display.running)), escape_hidden_line(tr(display.done))
    if row.sub_agent is not None and (row.sub_agent.ended_at is not None or result is None or not result.is_error):
        return _sub_agent_line(row.sub_agent, icon, target)
    settled = [part for ask in row.settled for part in _separated(settled_words(ask), "muted")]
    if row.state == "asks":
        return (
            "shield-question-mark",
            "waiting_mark",
            [LinePart(tr("waiting for your approval: {action}").format(action=is_running)), *target],
        )
    if row.state == "unknown":
        cut_off = [LinePart(tr("interrupted: {action}").format(action=is_running)), *target]
        return "triangle-alert", "waiting_mark", [*cut_off, *_separated(tr("outcome unknown"), "waiting")]
    if result is None:
        return _unfinished_line(row, icon, target, settled)
    if {"skipped", "stopped"} & set(result.marks):
        return _stopped_line(row, result, icon, target, settled)
    if any(ask.kind == "approval" and ask.status == "answered" and not ask.allowed for ask in row.settled):
        return "circle-x", "failed_mark", [*(target or [LinePart(is_running)]), *settled]
    if result.is_error:
        # A call that was refused or could not start was not done.
        verb = done if result.facts is not None else is_running
        outcome = _separated(one_line(result.summary or result.text, _SUMMARY), "failed")
        return "circle-x", "failed_mark", [LinePart(verb), *target, *outcome, *_time(result), *settled]
    return icon, "muted", [LinePart(done), *target, *_outcome(result), *_time(result), *settled]


def _unfinished_line(
    row: ToolCallRow, icon: str, target: list[LinePart], settled: list[LinePart]
) -> tuple[str, str, list[LinePart]]:
    """The line of a call that has no result yet, or will have none."""
    running = [LinePart(escape_hidden_line(tr(row.call.display.running))), *target]
    not_begun = target or running
    match row.state:
        case "interrupted":
            return icon, "muted", [*running, *_separated(tr("task interrupted"), "muted")]
        case "dropped":
            return icon, "muted", [*not_begun, *_separated(tr("not run"), "muted")]
        case "pending":
            return icon, "muted", [*not_begun, *_separated(tr("waiting"), "muted"), *settled]
        case "ended":
            time = _separated(_elapsed(row.progress), "muted")
            return icon, "muted", [LinePart(escape_hidden_line(tr(row.call.display.done))), *target, *time, *settled]
        case _:
            time = _separated(_elapsed(row.progress), "muted")
            return icon, "link", [*running, LinePart("…"), *time, *settled]


def _stopped_line(
    row: ToolCallRow, result: ToolResultBlock, icon: str, target: list[LinePart], settled: list[LinePart]
) -> tuple[str, str, list[LinePart]]:
    """The line of a call that a stop or a message of a person prevented or ended: no failure of its own."""
    has_begun = result.facts is not None
    verb = LinePart(escape_hidden_line(tr(row.call.display.done if has_begun else row.call.display.running)))
    why = tr("skipped for your message") if "skipped" in result.marks else tr("stopped") if has_begun else tr("not run")
    begun = [verb, *target] if has_begun or not target else target
    return icon, "muted", [*begun, *_separated(why, "muted"), *_time(result), *settled]


def _elapsed(progress: CallProgress | None) -> str:
    """The time of a call that has begun, from a second on; a running one without fractions."""
    if progress is None:
        return ""
    seconds = ((progress.ended_at or datetime.now(UTC)) - progress.started_at).total_seconds()
    if seconds < 1:
        return ""
    return duration(seconds) if progress.ended_at is not None else running_time(seconds)


def _sub_agent_line(task: Task, icon: str, target: list[LinePart]) -> tuple[str, str, list[LinePart]]:
    """`Look at the parser · thinking · 3 steps · $0.02`."""
    title = [replace(part, mono=False) for part in target]
    state, tint = sub_agent_state(task)
    reason = one_line(escape_hidden_line(task.error), _SUMMARY) if task.error and tint == "failed" else ""
    counts = " · ".join(filter(None, (trn("{n} step", "{n} steps", task.step_count), money(task.total_usage))))
    colour = "link" if task.ended_at is None else "muted"
    return (
        icon,
        colour,
        [*title, *_separated(state, tint), *_separated(reason, "failed"), *_separated(counts, "muted")],
    )


def sub_agent_state(task: Task) -> tuple[str, str]:
    """The state in words, and its colour."""
    if task.ended_at is not None:
        match task.status:
            case "completed":
                return tr("done"), "done"
            case "cancelled":
                return tr("stopped"), "muted"
            case _:
                return tr("failed"), "failed"
    if task.stopping:
        return tr("stopping"), "muted"
    if task.status == "waiting_user":
        return tr("waiting for you"), "waiting"
    if task.status == "tool_executing":
        return tool_activity(task.current_tool), "muted"
    return tr("thinking") if task.status == "thinking" else tr("working"), "muted"


def _target(display: CallDisplay) -> list[LinePart]:
    line = " ".join(escape_hidden_line(display.target).split())
    return [LinePart(line, "text", mono=True, elides=True)] if line else []


def _outcome(result: ToolResultBlock) -> list[LinePart]:
    facts = result.facts
    if facts is None or facts.added is None or facts.removed is None:
        return _separated(one_line(result.summary, _SUMMARY), "muted")
    counts = [LinePart(f"+{facts.added}", "done")] if facts.added else []
    counts += [LinePart(f"−{facts.removed}", "failed")] if facts.removed else []
    return counts or _separated(tr("no changes"), "muted")


def _separated(text: str, tint: str) -> list[LinePart]:
    return [LinePart("·"), LinePart(text, tint, elides=True)] if text else []


def _time(result: ToolResultBlock) -> list[LinePart]:
    if result.facts is None or result.facts.duration_ms is None:
        return []
    return [LinePart("·"), LinePart(duration(result.facts.duration_ms / 1000))]


def _markdown(row: ToolCallRow, is_open: bool) -> str:
    line = " ".join(piece.text for piece in _line_of(row)[2])
    if not is_open:
        return line
    diff, output = result_diff(row), _output(row)
    body = code_fence(diff, "diff") if diff else code_fence(output) if output.strip() else ""
    return f"{line}\n\n{body}".rstrip()


def _text(row: ToolCallRow) -> str:
    diff = result_diff(row)
    if diff:
        return "\n".join(line.text for line in diff_lines(diff))
    return f"{_arguments_text(row.call)[0]}\n{_output(row)}"


def _output(row: ToolCallRow) -> str:
    return output_text(_whole_output(row))


TOOL_CALL = RowKind(
    ToolCallRow,
    ToolCallView,
    spacing=lambda row: Spacing.ACTIVITY,
    estimate=line_estimate,
    markdown=_markdown,
    text=_text,
)
