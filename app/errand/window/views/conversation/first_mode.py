"""The choice of the approval mode before the first task, with an example of each; shown until a person has chosen."""

from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from errand.client.texts.task_options import approval_mode_text
from errand.protocol.tasks.groups import ApproveMode
from errand.text.translation import tr
from errand.window.theme.style import push_button
from errand.window.theme.theme import Theme
from errand.window.views.composer.approval_mode import ICONS
from errand.window.widgets.boxes import set_vbox, vbox
from errand.window.widgets.labels import TextLabel

_EXAMPLES: dict[ApproveMode, str] = {
    "auto": tr("Example: it runs your tests, and asks before it installs a package or pushes a branch."),
    "edits": tr("Example: it corrects a file, and asks before it runs your tests."),
    "ask": tr("Example: it reads your files, and asks before it corrects one."),
}


class FirstModeView(QWidget):
    """Emits `chosen` with the mode."""

    chosen = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._buttons: dict[ApproveMode, QPushButton] = {mode: self._button(mode) for mode in _EXAMPLES}
        hint = tr("You can change this at any time below the message field.")
        set_vbox(
            self,
            TextLabel(theme, tr("What may agents do without asking?"), bold=True),
            *(self._entry(mode, button) for mode, button in self._buttons.items()),
            theme.tokens.space_tight,
            TextLabel(theme, hint, size=theme.tokens.size_small, tone="muted", wrap=True),
            spacing=theme.tokens.space_tight,
        )
        theme.changed.connect(self._on_theme_changed)
        self._on_theme_changed()

    def _button(self, mode: ApproveMode) -> QPushButton:
        name, _ = approval_mode_text(mode, has_sandbox=True)
        button = push_button(tr("{mode} (recommended)").format(mode=name) if mode == "auto" else name, "row")
        button.clicked.connect(partial(self.chosen.emit, mode))
        return button

    def _entry(self, mode: ApproveMode, button: QPushButton) -> QVBoxLayout:
        tokens = self._theme.tokens
        about = f"{approval_mode_text(mode, has_sandbox=True)[1]} {_EXAMPLES[mode]}"
        label = TextLabel(self._theme, about, size=tokens.size_small, tone="muted", wrap=True)
        label.setContentsMargins(tokens.space_far + tokens.space_close, 0, 0, 0)
        button.setAccessibleDescription(about)
        return vbox(button, label, spacing=0)

    def _on_theme_changed(self) -> None:
        for mode, button in self._buttons.items():
            button.setIcon(self._theme.icon(ICONS[mode], "text"))
