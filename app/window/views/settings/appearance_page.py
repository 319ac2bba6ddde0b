"""How the window looks: light, dark, or as the system says; and whether anything may move."""

from functools import partial

from PySide6.QtWidgets import QButtonGroup, QCheckBox, QRadioButton

from app.window.theme.theme import Mode, Theme
from app.window.views.settings.page import SettingsPage, hairline
from app.window.widgets.text_label import TextLabel

_MODES: tuple[tuple[Mode, str], ...] = (
    ("system", "As the system says"),
    ("light", "Light"),
    ("dark", "Dark"),
)


class AppearancePage(SettingsPage):
    """Changes the theme at once; who keeps the choice listens to the theme."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Appearance", "A change shows at once.")
        self.rows.addWidget(TextLabel(theme, "Colours", bold=True))
        self._group = QButtonGroup(self)
        for mode, text in _MODES:
            button = QRadioButton(text)
            button.setAccessibleName(f"Colours: {text}")
            button.setChecked(mode == theme.mode)
            button.clicked.connect(partial(self._on_mode, mode))
            self._group.addButton(button)
            self.rows.addWidget(button)
        self.rows.addWidget(hairline())
        self.rows.addWidget(TextLabel(theme, "Motion", bold=True))
        self._motion = QCheckBox("Working states pulse")
        self._motion.setAccessibleName("Working states pulse")
        self._motion.setChecked(theme.motion)
        self._motion.clicked.connect(theme.set_motion)
        self.rows.addWidget(self._motion)

    def _on_mode(self, mode: Mode) -> None:
        self.theme.set_mode(mode)
