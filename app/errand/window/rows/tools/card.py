"""The card of a tool call: its arguments, its output or the diff of its change, and how its asks were settled."""

import json
from collections.abc import Callable
from textwrap import indent

from PySide6.QtCore import QUrl
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from errand.client.conversation.rows import ToolCallRow
from errand.client.patch import patch_of_diff
from errand.client.safe_text import escape_hidden, output_text
from errand.client.texts.tool_calls import content_of
from errand.protocol.base import JsonValue
from errand.protocol.blocks import ToolCallBlock
from errand.text.translation import tr
from errand.window.rows.asks.ask_card import outcome_text
from errand.window.rows.base import RowActions
from errand.window.rows.code_view import CodeView, DiffView
from errand.window.theme.style import paint_rounded, push_button, set_style
from errand.window.theme.theme import Theme
from errand.window.widgets.buttons import CopyButton, IconButton, ShortcutToolTip
from errand.window.widgets.diff.head import DiffHeadView
from errand.window.widgets.diff.lines import diff_lines, diff_name
from errand.window.widgets.labels import TextLabel

_MAX_LINES = 20
# Short output is appended to; of longer output the end is rendered again each time.
_MAX_SHOWN = 16_000
_LAST_LINES = 200


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
            self._arguments.show_code(*arguments_text(row.call))
        self._diff.setVisible(bool(diff))
        self._diff_head.setVisible(bool(diff))
        if diff:
            self._diff_text = diff
            self._diff_head.show_diff(diff)
            self._diff.show_lines(diff_lines(diff), diff_name(diff))
        self._task_id = row.node.task_id or ""
        self._show_review()
        self._full_output = "" if diff else full_output(row)
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


def arguments_text(call: ToolCallBlock) -> tuple[str, str]:
    """Return all arguments of the call, and their language."""
    if call.invalid is not None:
        return escape_hidden(call.invalid), ""
    if call.display.language:
        return escape_hidden(content_of(call)), call.display.language
    if any(isinstance(value, str) and "\n" in value for value in call.arguments.values()):
        return escape_hidden("\n".join(map(_argument, *zip(*call.arguments.items(), strict=True)))), "yaml"
    return escape_hidden(json.dumps(call.arguments, indent=2, ensure_ascii=False)), "json"


def _argument(name: str, value: JsonValue) -> str:
    """Return a text of several lines as it is, anything else as JSON; together the lines are YAML."""
    if isinstance(value, str) and "\n" in value:
        return f"{name}: |\n{indent(value, '  ')}"
    return f"{name}: {json.dumps(value, ensure_ascii=False)}"


def full_output(row: ToolCallRow) -> str:
    """Return the result, or the report of a sub-agent that has ended while the calls beside it still run."""
    if row.result is not None:
        return row.result.text
    task = row.sub_agent
    report = (
        task.outcome.summary or task.outcome.error or ""
        if task is not None and task.outcome.ended_at is not None
        else ""
    )
    return row.output or report


def _last_lines(output: str) -> str:
    if len(output) <= _MAX_SHOWN:
        return output
    return "\n".join(output[-_MAX_SHOWN:].splitlines()[1:][-_LAST_LINES:])


def _output_file(row: ToolCallRow) -> str:
    """Return the path of an output that was too long or not text; otherwise empty."""
    return row.result.facts.output_file if row.result and row.result.facts else ""


def result_diff(row: ToolCallRow) -> str:
    """Return the file change made by the call, as a unified diff; empty if there is none."""
    return row.result.facts.diff if row.result and row.result.facts else ""
