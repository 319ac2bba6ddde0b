"""The contents of the context window, part by part: the popover of the context bar."""

from PySide6.QtCore import QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QSizePolicy, QWidget

from errand.client.number_format import tokens
from errand.client.safe_text import plain
from errand.client.texts.context import CONTEXT_PARTS, PROMPT_PARTS, findable_text, part_items_text
from errand.client.texts.limits import limit_name
from errand.protocol.context import ContextExplainResult, ContextPart, ContextShare, PromptShare
from errand.protocol.tasks.groups import DecidedMode
from errand.protocol.tasks.task import Task
from errand.text.translation import grouped, tr, trn
from errand.window.theme.style import Tone, push_button, set_style, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.views.usage.mode_switch import ModeSwitchView
from errand.window.widgets.boxes import fill, hbox, vbox
from errand.window.widgets.dialogs import move_on_screen
from errand.window.widgets.labels import TextLabel

_WIDTH, _BAR, _SWATCH = 340, 10, 10
_DECIDED: dict[DecidedMode, str] = {"task": tr("taken as a task"), "chat": tr("taken as a chat")}
_SHARES_ESTIMATED = tr("The total is from the provider. The parts are estimated.")
_NO_SHARES = tr("The total is from the provider. No breakdown is available.")
_ABOUT = tr("The model then reads a summary of the earlier messages.")
_COLOURS: dict[ContextPart, str] = {
    "system": "muted",
    "tools": "syntax_keyword",
    "services": "syntax_string",
    "summary": "person_violet",
    "kept": "person_pink",
    "environment": "person_teal",
    "history": "accent",
    "results": "done_mark",
    "memory": "waiting_mark",
}


class ContextPopoverView(QFrame):
    """`summarise_requested` closes it: the result appears in the transcript. `mode_requested` gives another mode."""

    summarise_requested = Signal()
    mode_requested = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self._theme = theme
        set_style(self, "look", "popover")
        self.setAccessibleName(tr("Context"))
        self._title = TextLabel(theme, bold=True)
        self._total = TextLabel(theme, tone="muted", wrap=True)
        self._task = TextLabel(theme, tone="muted", wrap=True)
        self._task.hide()
        self._near_limit = TextLabel(theme, tone="waiting", wrap=True)
        self._near_limit.hide()
        self._mode = ModeSwitchView(of_ended=False)
        self._mode.mode_requested.connect(self._on_mode_requested)
        self._bar = _SharesBar(theme)
        self._rows = QWidget()
        self._explanation = TextLabel(theme, tone="muted", size=theme.tokens.size_small)
        self._explanation.setWordWrap(True)
        self._summarise = push_button(tr("Summarise now"), "quiet", name=tr("Summarise earlier messages now"))
        self._summarise.clicked.connect(self._on_summarise_clicked)
        self._lock_reason = TextLabel(theme, _ABOUT, tone="muted", size=theme.tokens.size_small)
        self._lock_reason.setWordWrap(True)
        self.setFixedWidth(theme.pixels(_WIDTH))
        tokens = theme.tokens
        self._column = vbox(
            hbox(fill(self._task), self._mode),
            self._near_limit,
            self._title,
            self._total,
            self._bar,
            self._rows,
            self._explanation,
            hbox(fill(self._lock_reason), self._summarise, spacing=tokens.space_close),
            spacing=tokens.space_close,
            margins=(tokens.space_wide, tokens.space_normal, tokens.space_wide, tokens.space_normal),
        )
        self.setLayout(self._column)

    def show_task(self, task: Task) -> None:
        """Turns and tokens of the task, the mode it decided on itself, and the limits that it nears."""
        turns = trn("{n} turn", "{n} turns", task.progress.step_count) if task.progress.step_count else ""
        mode = _DECIDED[task.options.decided] if task.options.mode == "auto" and task.options.decided else ""
        text = " · ".join(part for part in (turns, tokens(task.total_usage), mode) if part)
        self._task.show_text(text)
        near = task.budget.near if task.outcome.ended_at is None else ()
        self._near_limit.setText(tr("Close to the limit: {limits}").format(limits=", ".join(map(limit_name, near))))
        self._near_limit.setVisible(bool(near))
        self._mode.show_task(task)

    def show_parts(self, found: ContextExplainResult) -> None:
        window = found.window_tokens
        self._title.setText(tr("Context of turn {turn}").format(turn=found.turn))
        used = trn("{n} token", "{n} tokens", found.used_tokens)
        if window:
            total_text = tr("{used} of {window} that {model} can read").format(
                used=used, window=grouped(window), model=found.model
            )
        else:
            total_text = tr("{used}, sent to {model}").format(used=used, model=found.model)
        self._total.setText(total_text)
        self._bar.show_shares(found.shares, window or found.used_tokens)
        self._bar.setVisible(bool(found.shares))
        self._explanation.setText(_SHARES_ESTIMATED if found.shares else _NO_SHARES)
        rows = self._made_rows(found)
        self._column.replaceWidget(self._rows, rows)
        self._rows.hide()
        self._rows.deleteLater()
        self._rows = rows

    def lock(self, why: str) -> None:
        """Set why summarising is disabled, as a sentence; empty if it is enabled."""
        self._summarise.setEnabled(not why)
        set_tool_tip(self._summarise, why)
        self._summarise.setAccessibleDescription(why)
        self._lock_reason.setText(why or _ABOUT)

    def open_above(self, button: QWidget) -> None:
        """Aligns its lower right corner with the upper right corner of the button."""
        self.show()  # the fonts of its parts are known only now
        self._column.activate()
        width = self._theme.pixels(_WIDTH)
        self.setFixedWidth(width)
        self.resize(width, self._column.totalHeightForWidth(width))
        corner = button.mapToGlobal(QPoint(button.width(), 0))
        move_on_screen(self, corner - QPoint(self.width(), self.height() + self._theme.tokens.space_tight))
        self.setFocus()

    def _on_mode_requested(self, mode: DecidedMode) -> None:
        self.hide()
        self.mode_requested.emit(mode)

    def _on_summarise_clicked(self) -> None:
        self.hide()
        self.summarise_requested.emit()

    def _made_rows(self, found: ContextExplainResult) -> QWidget:
        rows = QWidget()
        grid = QGridLayout(rows)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(self._theme.tokens.space_close)
        grid.setVerticalSpacing(self._theme.tokens.space_tight)
        grid.setColumnStretch(1, 1)
        for share in found.shares:
            row, name = grid.rowCount(), CONTEXT_PARTS[share.part]
            items = part_items_text(share.part, share.items)
            grid.addWidget(_Swatch(self._theme, _COLOURS[share.part]), row, 0)
            grid.addWidget(TextLabel(self._theme, name), row, 1)
            grid.addWidget(TextLabel(self._theme, items, tone="muted"), row, 2, Qt.AlignmentFlag.AlignRight)
            grid.addWidget(self._number(name, share.tokens), row, 3, Qt.AlignmentFlag.AlignRight)
            if findable := findable_text(share):
                label = TextLabel(self._theme, findable, tone="muted", size=self._theme.tokens.size_small, wrap=True)
                grid.addWidget(label, grid.rowCount(), 1, 1, 3)
            for part in found.prompt if share.part == "system" else ():
                self._add_prompt_part(grid, part)
        return rows

    def _add_prompt_part(self, grid: QGridLayout, part: PromptShare) -> None:
        """The parts of the instructions are listed below them; their files are in the tool tip."""
        row, name, small = grid.rowCount(), PROMPT_PARTS[part.part], self._theme.tokens.size_small
        label = TextLabel(self._theme, name, tone="muted", size=small)
        set_tool_tip(label, "\n".join(map(plain, part.sources)))
        label.setAccessibleDescription(label.toolTip())
        grid.addWidget(label, row, 1)
        number = self._number(name, part.tokens, tone="muted", size=small)
        grid.addWidget(number, row, 3, Qt.AlignmentFlag.AlignRight)

    def _number(self, name: str, tokens: int, tone: Tone = "text", size: int = 0) -> TextLabel:
        label = TextLabel(self._theme, f"{tokens:,}", tone=tone, size=size)
        label.setAccessibleName(f"{name}: {trn('{n} token', '{n} tokens', tokens)}")
        return label


class _Swatch(QWidget):
    def __init__(self, theme: Theme, colour: str) -> None:
        super().__init__()
        self._theme = theme
        self._colour = colour
        self.setFixedSize(_SWATCH, _SWATCH)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self._theme.colour(self._colour)))
        painter.drawRoundedRect(QRectF(self.rect()), 3, 3)


class _SharesBar(QWidget):
    """The free space stays empty."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._shares: tuple[ContextShare, ...] = ()
        self._whole = 1
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_shares(self, shares: tuple[ContextShare, ...], whole: int) -> None:
        self._shares = shares
        self._whole = max(whole, sum(share.tokens for share in shares), 1)
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(_WIDTH, _BAR)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        outline = QPainterPath()
        outline.addRoundedRect(QRectF(self.rect()), _BAR / 2, _BAR / 2)
        painter.setClipPath(outline)
        painter.fillRect(self.rect(), QColor(self._theme.tokens.pressed))
        left = 0.0
        for share in self._shares:
            wide = self.width() * share.tokens / self._whole
            painter.fillRect(QRectF(left, 0, wide, _BAR), QColor(self._theme.colour(_COLOURS[share.part])))
            left += wide
