"""The approval mode in the composer: the button that shows it, the panel to choose it, and the way out of plan mode."""

from functools import partial

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from errand.client.texts.task_options import ALL_WARNINGS, approval_mode_text
from errand.protocol.tasks.groups import ApproveMode
from errand.text.translation import tr
from errand.window.theme.style import Tone, push_button, set_style, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.widgets.boxes import STRETCH, hbox, set_hbox, set_vbox, vbox
from errand.window.widgets.dialogs import FramelessDialog, move_on_screen
from errand.window.widgets.labels import TextLabel

ICONS: dict[ApproveMode, str] = {
    "ask": "shield-question-mark",
    "edits": "file-pen",
    "auto": "shield-check",
    "plan": "list",
    "all": "shield-alert",
    "never": "circle-x",
}
# `never` is for tasks without a person.
_CHOICES: tuple[ApproveMode, ...] = ("ask", "edits", "auto", "plan", "all")
_TONES: dict[ApproveMode, Tone] = {"all": "waiting", "plan": "link"}
_LEAVE_PLAN = tr("Exit plan mode")


def choices(*, has_sandbox: bool) -> tuple[ApproveMode, ...]:
    """Return the modes that a person can choose; without a sandbox, `auto` would be `edits` by another name."""
    return tuple(mode for mode in _CHOICES if has_sandbox or mode != "auto")


def next_mode(mode: ApproveMode, *, has_sandbox: bool) -> ApproveMode:
    """Return the mode after this one when a person cycles: never one that allows everything."""
    modes = choices(has_sandbox=has_sandbox)[:-1]
    return modes[(modes.index(mode) + 1) % len(modes)] if mode in modes else "ask"


class ApprovalModeView(QWidget):
    """The mode, and in plan mode a button that leaves it. Emits `chosen` with the mode that the user chose.

    `words` are the texts of the visible buttons, the least important first, for a bar that hides them when space is
    short.
    """

    chosen = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._mode: ApproveMode = "ask"
        self._has_sandbox = False
        self.words: dict[QPushButton, str] = {}
        self.mode_button = push_button("", "quiet")
        self.leave_plan_button = push_button("", "quiet", name=_LEAVE_PLAN)
        set_tool_tip(self.leave_plan_button, tr("Let the agent make changes again, asking first (Shift+Tab)"))
        set_hbox(self, self.mode_button, self.leave_plan_button, spacing=0)
        self.mode_button.clicked.connect(self.open_panel)
        self.leave_plan_button.clicked.connect(self.cycle)

    def show_mode(self, mode: ApproveMode, *, has_sandbox: bool) -> None:
        """Amber if everything is allowed; marked in plan mode. The texts are set by the bar."""
        self._mode, self._has_sandbox = mode, has_sandbox
        name, about = approval_mode_text(mode, has_sandbox=has_sandbox)
        tone = _TONES.get(mode)
        self.words = {self.leave_plan_button: _LEAVE_PLAN} if mode == "plan" else {}
        self.words[self.mode_button] = name
        self.leave_plan_button.setVisible(mode == "plan")
        self.leave_plan_button.setIcon(self._theme.icon("play", "muted"))
        self.mode_button.setAccessibleName(tr("Approval mode: {mode}").format(mode=name))
        self.mode_button.setAccessibleDescription(about)
        set_tool_tip(self.mode_button, tr("{about} Press Shift+Tab to switch.").format(about=about))
        set_style(self.mode_button, "tone", tone or "")
        self.mode_button.setIcon(self._theme.icon(ICONS[mode], tone or "muted"))

    def open_panel(self) -> None:
        """Open the panel of the approval modes."""
        dialog = ApprovalModeDialog(self._theme, self._mode, self, has_sandbox=self._has_sandbox)
        dialog.chosen.connect(self.chosen)
        dialog.open_above(self.mode_button)

    def cycle(self) -> None:
        """Choose the next approval mode: ask, accept edits, auto, plan. From plan mode this leaves it."""
        self.chosen.emit(next_mode(self._mode, has_sandbox=self._has_sandbox))


class ApprovalModeDialog(FramelessDialog):
    """Emits `chosen` with the mode. Allowing everything requires a confirmation."""

    chosen = Signal(str)

    def __init__(self, theme: Theme, mode: ApproveMode, parent: QWidget, *, has_sandbox: bool) -> None:
        super().__init__(theme, Qt.WindowType.Popup, parent)
        self.setAccessibleName(tr("What the agent may do without asking"))
        self.setWindowTitle(tr("What the agent may do without asking"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._theme = theme
        self._mode = mode
        self._has_sandbox = has_sandbox
        self._buttons: dict[ApproveMode, QPushButton] = {
            choice: self._button(choice) for choice in choices(has_sandbox=has_sandbox)
        }
        self._confirm = _Confirmation(theme, ALL_WARNINGS[has_sandbox])
        self._confirm.answered.connect(self._on_confirmed)
        space = theme.tokens.space_wide
        hint = TextLabel(
            theme,
            tr("Press Shift+Tab in the message field to switch between all but the last."),
            size=theme.tokens.size_small,
            tone="muted",
            wrap=True,
        )
        set_vbox(
            self,
            TextLabel(theme, tr("What the agent may do without asking"), bold=True),
            *(self._entry(choice, button) for choice, button in self._buttons.items()),
            self._confirm,
            hint,
            spacing=theme.tokens.space_tight,
            margins=(space, space, space, space),
        )

    def open_above(self, button: QWidget) -> None:
        """Open with the lower edge above the button, inside the window."""
        space, window = self._theme.tokens.space_close, button.window()
        self.setFixedWidth(min(self._theme.tokens.column * 5 // 9, window.width() - 2 * space))
        corner = button.mapTo(window, QPoint(0, -space))
        corner.setX(min(corner.x(), window.width() - self.width() - space))
        move_on_screen(self, window.mapToGlobal(corner))
        self.show()
        self._fit(self.y())
        self._buttons[self._mode if self._mode in self._buttons else "ask"].setFocus()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        steps: dict[int, int] = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}
        step = steps.get(event.key())
        focused = next((index for index, each in enumerate(self._buttons.values()) if each.hasFocus()), None)
        if step is None or focused is None:
            super().keyPressEvent(event)
            return
        buttons = list(self._buttons.values())
        buttons[(focused + step) % len(buttons)].setFocus(Qt.FocusReason.TabFocusReason)

    def _button(self, mode: ApproveMode) -> QPushButton:
        name, about = approval_mode_text(mode, has_sandbox=self._has_sandbox)
        is_current = mode == self._mode
        button = push_button(name, "quiet", name=tr("{name}, selected").format(name=name) if is_current else name)
        tone = "waiting" if mode == "all" else "text"
        button.setIcon(self._theme.icon("check" if is_current else ICONS[mode], tone))
        button.setAccessibleDescription(about)
        button.clicked.connect(partial(self._on_clicked, mode))
        return button

    def _entry(self, mode: ApproveMode, button: QPushButton) -> QVBoxLayout:
        tokens = self._theme.tokens
        _, about = approval_mode_text(mode, has_sandbox=self._has_sandbox)
        label = TextLabel(self._theme, about, size=tokens.size_small, tone="muted", wrap=True)
        label.setContentsMargins(tokens.space_far + tokens.space_close, 0, 0, tokens.space_tight)
        return vbox(hbox(button, STRETCH), label, spacing=0)

    def _on_clicked(self, mode: ApproveMode) -> None:
        if mode == "all" and self._mode != "all":
            bottom = self.y() + self.height()
            self._confirm.show()
            self._fit(bottom)
            self._confirm.setFocus()
            return
        self._choose(mode)

    def _on_confirmed(self, is_sure: bool) -> None:
        if is_sure:
            self._choose("all")
            return
        bottom = self.y() + self.height()
        self._confirm.hide()
        self._fit(bottom)
        self._buttons["all"].setFocus()

    def _choose(self, mode: ApproveMode) -> None:
        self.close()
        if mode != self._mode:
            self.chosen.emit(mode)

    def _fit(self, bottom: int) -> None:
        """Resize to the height of the content, with the lower edge at `bottom`."""
        layout = self.layout()
        assert layout is not None
        layout.activate()
        self.resize(self.width(), layout.totalHeightForWidth(self.width()))
        move_on_screen(self, QPoint(self.x(), bottom - self.height()))


class _Confirmation(QWidget):
    """The confirmation of "Allow all"."""

    answered = Signal(bool)

    def __init__(self, theme: Theme, warning: str) -> None:
        super().__init__()
        allow, keep = push_button(tr("Allow everything"), "danger"), push_button(tr("Keep asking"))
        set_vbox(
            self,
            TextLabel(theme, warning, tone="waiting", wrap=True),
            hbox(keep, allow, STRETCH),
            margins=(0, theme.tokens.space_close, 0, theme.tokens.space_close),
        )
        allow.clicked.connect(self._on_allowed)
        keep.clicked.connect(self._on_kept)
        self.setFocusProxy(keep)
        self.hide()

    def _on_allowed(self) -> None:
        self.answered.emit(True)

    def _on_kept(self) -> None:
        self.answered.emit(False)
