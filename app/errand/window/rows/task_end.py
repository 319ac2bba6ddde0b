"""The end of a task (completed, stopped, failed, limit) and notices of the engine."""

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QLabel, QWidget

from errand.client.conversation.rows import NoticeRow, TaskEndRow
from errand.client.number_format import task_totals
from errand.client.safe_text import plain
from errand.client.texts.tasks import (
    is_answer,
    is_unfinished,
    neutral_text,
    refused_text,
    unfinished_text,
    untouched_text,
)
from errand.protocol.blocks import NoticeKind
from errand.protocol.tasks.task import Task
from errand.text.notice_text import notice_text
from errand.text.translation import tr, trn
from errand.window import CLIENT_NAME
from errand.window.rows.base import RowActions, RowKind, RowView, Spacing, card_estimate, line_estimate
from errand.window.rows.markdown import markdown_document, plain_document, without_markup
from errand.window.rows.message_actions import BranchLock, HoverActionsView
from errand.window.rows.text_view import TextView
from errand.window.theme.style import Tone, paint_rounded, push_button, set_style
from errand.window.theme.theme import Theme
from errand.window.theme.tokens import DesignTokens
from errand.window.widgets.boxes import STRETCH, BoxPart, at_top, fill, hbox, set_hbox, set_vbox
from errand.window.widgets.buttons import IconButton, ShortcutToolTip
from errand.window.widgets.labels import ElidedLabel

_ICONS: dict[NoticeKind, tuple[str, str]] = {
    "stopped": ("circle-stop", "muted"),
    "limit": ("gauge", "waiting_mark"),
    "error": ("circle-alert", "failed_mark"),
    "resumed": ("play", "muted"),
    "interrupted": ("triangle-alert", "waiting_mark"),
    "model": ("refresh-cw", "muted"),
    "permission": ("shield-alert", "muted"),
    "warning": ("triangle-alert", "waiting_mark"),
    "info": ("info", "muted"),
}


@dataclass(frozen=True, slots=True)
class _EndLabel:
    """Its text, its icon, and the state whose colours it uses; `muted` for an end that is neither good nor bad."""

    text: str
    icon: str
    state: Tone

    @property
    def mark(self) -> str:
        return "muted" if self.state == "muted" else f"{self.state}_mark"

    @property
    def background(self) -> str:
        return "panel" if self.state == "muted" else f"{self.state}_soft"


class _QuietEnd(HoverActionsView):
    """The end of a task whose last reply says all: actions, time and cost while the pointer is over the row.

    What speaks against a success is visible all the time; that a chat changed nothing does not.
    """

    def __init__(
        self,
        theme: Theme,
        owner: QWidget,
        copy: Callable[[], None],
        retry: Callable[[], None],
        fork: Callable[[], None],
        review: Callable[[], None],
    ) -> None:
        super().__init__(theme, owner)
        self._copy = self.add("copy", tr("Copy reply"), copy)
        self._retry = self.add("refresh-cw", tr("Retry"), retry)
        self._fork = self.add("git-branch", tr("New branch from here"), fork)
        self.review = self.add("file-diff", tr("Review changed files"), review)
        self.branching = (self._retry, self._fork)
        self._totals = self.add_text()
        self.remark = ElidedLabel(theme, size=theme.tokens.size_small, tone="muted")

    def show_row(self, row: TaskEndRow) -> None:
        self._copy.setVisible(bool(row.reply))
        self._retry.setVisible(row.retry_id is not None)
        self._fork.setVisible(row.fork_id is not None)
        remark = _quiet_remark(row.task)
        self.remark.setVisible(bool(remark))
        self.remark.set_text(remark)
        label = () if remark else (_end_label(row.task).text,)
        self._totals.set_text(" · ".join((*label, *task_totals(row.task))))


class TaskEndView(RowView[TaskEndRow]):
    def __init__(self, theme: Theme, actions: RowActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        tokens = theme.tokens
        self._row: TaskEndRow | None = None
        self._has_files = False
        self._icon = QLabel()
        self._title = QLabel()
        self._title.setTextFormat(Qt.TextFormat.PlainText)
        self._title.setFont(theme.font(tokens.size_base, bold=True))
        self._totals = ElidedLabel(theme, size=tokens.size_small, tone="muted")
        self._text = TextView(theme, tr("Summary"), self)
        self._text.link.connect(actions.open_link)
        self._retry = self._button("refresh-cw", tr("Retry"), self._on_retry_clicked)
        self._fork = self._button("git-branch", tr("New branch from here"), self._on_fork_clicked)
        self._review = push_button("")
        set_style(self._review, "look", "small")
        self._review.setFont(theme.font(tokens.size_small))
        ShortcutToolTip(self._review, tr("Review the changed files"), "review")
        self._review.clicked.connect(self._on_review_clicked)
        self._review_icon = self._button("file-diff", "", self._on_review_clicked)
        self._card = QWidget(self)
        self._quiet = _QuietEnd(
            theme,
            self,
            self._on_copy_clicked,
            self._on_retry_clicked,
            self._on_fork_clicked,
            self._on_review_clicked,
        )
        self._remarks = TextView(theme, tr("What was terminated"), self)
        self._labelled_retry = push_button(tr("Retry"))
        self._labelled_retry.clicked.connect(self._on_retry_clicked)
        self._set_up = push_button(tr("Models and keys…"))
        self._set_up.clicked.connect(actions.set_up_models)
        self._lay_out()
        locked = (self._retry, self._fork, self._labelled_retry, *self._quiet.branching)
        BranchLock(actions.branches, locked, self)
        actions.changes.changed.connect(self._show_review)

    def _lay_out(self) -> None:
        tokens = self.theme.tokens
        head = hbox(
            self._icon,
            fill(self._title),
            BoxPart(self._totals, alignment=Qt.AlignmentFlag.AlignRight),
            self._review,
            self._review_icon,
            self._retry,
            self._fork,
            spacing=tokens.space_close,
        )
        set_vbox(self, self._quiet.remark, self._quiet, self._card)
        set_vbox(
            self._card,
            head,
            self._text,
            self._remarks,
            hbox(self._labelled_retry, self._set_up, STRETCH, spacing=tokens.space_close),
            spacing=tokens.space_close,
            margins=(tokens.space_wide, tokens.space_normal, tokens.space_wide, tokens.space_normal),
        )

    def set_row(self, row: TaskEndRow) -> None:
        task = row.task
        self._row = row
        label, size = _end_label(task), self.theme.tokens.icon_small
        is_quiet = _is_quiet(row)
        self._card.setVisible(not is_quiet)
        self._quiet.setVisible(is_quiet)
        if is_quiet:
            self._quiet.show_row(row)
        else:
            self._quiet.remark.hide()
        icon = self.theme.icon(label.icon, label.mark)
        self._icon.setPixmap(icon.pixmap(QSize(size, size), self.devicePixelRatioF()))
        self._title.setText(label.text)
        set_style(self._title, "tone", label.state)
        refused = refused_text(task) if task.outcome.stop_reason == "completed" else ""
        self._totals.set_text(" · ".join(part for part in (refused, *task_totals(task)) if part))
        has_error = label.state == "failed" and bool(task.outcome.error)
        text = task.outcome.error if has_error else task.outcome.summary
        self._text.setVisible(bool(text))
        if text:
            document = plain_document(plain(text), self.theme) if has_error else markdown_document(text, self.theme)
            self._text.setAccessibleName(tr("What went wrong") if has_error else tr("Summary"))
            self._text.show_document(document)
        remarks = " ".join(filter(None, (_remarks(row), untouched_text(task))))
        self._remarks.setVisible(bool(remarks))
        self._remarks.show_document(plain_document(plain(remarks), self.theme, colour="muted"))
        is_done = label.state in ("done", "muted")
        self._retry.setVisible(row.retry_id is not None and is_done)
        self._labelled_retry.setVisible(row.retry_id is not None and not is_done)
        self._set_up.setVisible(row.is_model_failure)
        self._fork.setVisible(row.fork_id is not None)
        self._show_review()
        self.setAccessibleName(label.text)
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_head()

    def markdown(self) -> str:
        return (self._row.task.outcome.summary or self._row.task.outcome.error or "") if self._row else ""

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._row is not None and not _is_quiet(self._row):
            background = self.theme.colour(_end_label(self._row.task).background)
            paint_rounded(QPainter(self), self.rect(), self.theme.tokens.radius_card, fill=background)

    def _button(self, icon: str, name: str, clicked: Callable[[], None]) -> IconButton:
        button = IconButton(self.theme, icon, name)
        button.clicked.connect(clicked)
        return button

    def _on_copy_clicked(self) -> None:
        if self._row is not None:
            self.row_actions.copy(self._row.reply)

    def _on_retry_clicked(self) -> None:
        if self._row is not None and self._row.retry_id is not None:
            self.row_actions.branches.retry(self._row.retry_id)

    def _show_review(self) -> None:
        files = self.row_actions.changes.count(self._row.task.id) if self._row is not None else 0
        had_files, self._has_files = self._has_files, files > 0
        self._review.setText(trn("Review {n} file", "Review {n} files", files))
        self._review.setAccessibleName(self._review.text())
        self._review_icon.set_icon_and_name("file-diff", self._review.text())
        self._fit_head()
        if had_files != self._has_files:
            self.resized.emit()
        self._quiet.review.setVisible(files > 0)

    def _fit_head(self) -> None:
        """Make the review an icon in a narrow column, so that the title is complete."""
        space, icons = self.theme.tokens.space_close, 3 * (self.theme.tokens.icon_small + self.theme.tokens.space_close)
        parts = self._title.sizeHint().width(), self._totals.minimumSizeHint().width(), self._review.sizeHint().width()
        is_narrow = self.width() < sum(parts) + icons + 2 * self.theme.tokens.space_wide + len(parts) * space
        self._review.setVisible(self._has_files and not is_narrow)
        self._review_icon.setVisible(self._has_files and is_narrow)

    def _on_review_clicked(self) -> None:
        if self._row is not None:
            self.row_actions.changes.review(self._row.task.id)

    def _on_fork_clicked(self) -> None:
        if self._row is not None and self._row.fork_id is not None:
            self.row_actions.branches.fork(self._row.fork_id)


def _is_quiet(row: TaskEndRow) -> bool:
    """Return True if the task ended well and there is nothing to say that its last reply does not say."""
    return _end_label(row.task).state in ("done", "muted") and not (
        row.task.outcome.summary or _remarks(row) or refused_text(row.task)
    )


def _quiet_remark(task: Task) -> str:
    """Return what is visible of a quiet end without the pointer over it."""
    end_text = "" if task.options.mode == "chat" and is_answer(task) else neutral_text(task)
    return " · ".join(filter(None, (end_text, untouched_text(task))))


def _remarks(row: TaskEndRow) -> str:
    """Return who stopped the task, unless it was this window, and the remarks on its end."""
    is_by_another = row.stopped_by not in ("", CLIENT_NAME)
    who = [tr("By {who}.").format(who=row.stopped_by)] if is_by_another else []
    return " ".join((*who, *row.remarks))


def _end_label(task: Task) -> _EndLabel:
    match task.outcome.stop_reason:
        case "completed" if is_unfinished(task):
            return _EndLabel(unfinished_text(task), "circle-alert", "waiting")
        case "completed" if neutral := neutral_text(task):
            return _EndLabel(neutral, "message-square" if is_answer(task) else "info", "muted")
        case "completed":
            label = tr("Reply complete") if "chat" in (task.options.mode, task.options.decided) else tr("Task complete")
            return _EndLabel(label, "circle-check", "done")
        case "manual_stop":
            return _EndLabel(tr("Stopped by you"), "circle-stop", "waiting")
        case "iteration_limit":
            return _EndLabel(tr("Stopped: turn limit reached"), "gauge", "waiting")
        case "time_limit":
            return _EndLabel(tr("Stopped: time limit reached"), "gauge", "waiting")
        case "budget_limit":
            return _EndLabel(tr("Stopped: budget used up"), "gauge", "waiting")
        case "token_limit":
            return _EndLabel(tr("Stopped: token limit reached"), "gauge", "waiting")
        case "day_limit":
            return _EndLabel(tr("Stopped: daily limit reached"), "gauge", "waiting")
        case "error" | None:
            return _EndLabel(tr("Failed"), "circle-x", "failed")


class NoticeView(RowView[NoticeRow]):
    def __init__(self, theme: Theme, actions: RowActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        tokens = theme.tokens
        self._icon = QLabel(self)
        self._icon.setFixedSize(tokens.icon_small, tokens.size_base * 3 // 2)
        self._text = TextView(theme, tr("Notice"), self)
        set_hbox(
            self,
            at_top(self._icon),
            fill(self._text),
            spacing=tokens.space_close,
            margins=(tokens.space_close, tokens.space_tight, 0, tokens.space_tight),
        )

    def set_row(self, row: NoticeRow) -> None:
        icon, tint = _ICONS[row.notice.kind]
        size = self.theme.tokens.icon_small
        self._icon.setPixmap(self.theme.icon(icon, tint).pixmap(QSize(size, size), self.devicePixelRatioF()))
        colour = "failed" if row.notice.kind == "error" else "muted"
        self._text.show_document(plain_document(plain(notice_text(row.notice)).strip(), self.theme, colour=colour))


def _estimate(row: TaskEndRow, width: int, tokens: DesignTokens) -> int:
    return (line_estimate if _is_quiet(row) else card_estimate)(row, width, tokens)


def _end_markdown(row: TaskEndRow, is_open: bool) -> str:
    if _is_quiet(row):
        return _quiet_remark(row.task)
    text_of_task = row.task.outcome.summary or row.task.outcome.error
    texts = (_end_label(row.task).text, text_of_task, _remarks(row), untouched_text(row.task))
    return "\n\n".join(text for text in texts if text)


def _end_text(row: TaskEndRow) -> str:
    text_of_task = without_markup(row.task.outcome.summary or row.task.outcome.error or "")
    return "\n".join(text for text in (text_of_task, _remarks(row)) if text)


TASK_END = RowKind(
    TaskEndRow,
    TaskEndView,
    spacing=lambda row: Spacing.TEXT if _is_quiet(row) else Spacing.CARD,
    estimate=_estimate,
    markdown=_end_markdown,
    text=_end_text,
)

NOTICE = RowKind(
    NoticeRow,
    NoticeView,
    spacing=lambda row: Spacing.TEXT,
    estimate=line_estimate,
    markdown=lambda row, is_open: plain(notice_text(row.notice)).strip(),
    text=lambda row: plain(notice_text(row.notice)),
)
