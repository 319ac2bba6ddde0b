"""Appearance: light or dark, zoom, transcript font, motion."""

from functools import partial

from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import QButtonGroup, QRadioButton

from errand.text.translation import tr
from errand.window.theme.style import focus_by_keys
from errand.window.theme.theme import ZOOMS, Mode, Theme
from errand.window.views.settings.page import SettingsPageView
from errand.window.widgets.boxes import fill, hbox
from errand.window.widgets.containers import hairline
from errand.window.widgets.forms.combo_box import ComboBox
from errand.window.widgets.forms.form import form
from errand.window.widgets.labels import TextLabel

_MODES: tuple[tuple[Mode, str], ...] = (
    ("system", tr("System")),
    ("light", tr("Light")),
    ("dark", tr("Dark")),
)
_MOTIONS: tuple[tuple[bool | None, str], ...] = (
    (None, tr("System")),
    (False, tr("Reduced")),
)
_SYSTEM_FONT = tr("System font")
_SIZES = tuple(range(11, 23))


class AppearancePageView(SettingsPageView):
    """Changes the theme at once; the code that stores the choice listens to the theme."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, tr("Appearance"), tr("Changes apply immediately."))
        self._add_colours()
        self._add_zoom()
        self._add_font()
        self._add_motion()

    def _add_colours(self) -> None:
        self.add_section(tr("Theme"))
        group = QButtonGroup(self)
        for mode, text in _MODES:
            button = self._add_button(group, tr("Theme"), text, chosen=mode == self.theme.mode)
            button.clicked.connect(partial(self.theme.set_mode, mode))

    def _add_zoom(self) -> None:
        theme = self.theme
        self._zoom = ComboBox(tuple(f"{percent} %" for percent in ZOOMS), name=tr("Zoom"))
        self._zoom.activated.connect(self._on_zoom_chosen)
        theme.changed.connect(self._on_theme_changed)
        self._on_theme_changed()
        row = hbox(
            TextLabel(theme, tr("Zoom"), bold=True),
            self._zoom,
            fill(TextLabel(theme, tr("Press Ctrl+Plus or Ctrl+Minus anywhere to change it."), tone="muted")),
            spacing=theme.tokens.space_wide,
        )
        self.rows.addWidget(hairline())
        self.rows.addLayout(row)

    def _add_font(self) -> None:
        theme = self.theme
        self.add_section(tr("Conversation text"))
        self._family = ComboBox((_SYSTEM_FONT, *QFontDatabase.families()), name=tr("Font"))
        self._family.setCurrentText(theme.reading_family or _SYSTEM_FONT)
        self._size = ComboBox(tuple(f"{size} px" for size in _SIZES), name=tr("Size"))
        self._size.setCurrentText(f"{theme.reading_size} px")
        self.rows.addLayout(form(theme, (tr("Font"), self._family), (tr("Size"), self._size)))
        self._family.activated.connect(self._on_font_chosen)
        self._size.activated.connect(self._on_font_chosen)

    def _add_motion(self) -> None:
        self.add_section(tr("Motion"))
        group = QButtonGroup(self)
        for motion, text in _MOTIONS:
            button = self._add_button(group, tr("Motion"), text, chosen=motion == self.theme.wanted_motion)
            button.clicked.connect(partial(self.theme.set_motion, motion))

    def _add_button(self, group: QButtonGroup, kind: str, text: str, *, chosen: bool) -> QRadioButton:
        button = QRadioButton(text)
        focus_by_keys(button)
        button.setAccessibleName(f"{kind}: {text}")
        button.setChecked(chosen)
        group.addButton(button)
        self.rows.addWidget(button)
        return button

    def _on_zoom_chosen(self, place: int) -> None:
        self.theme.set_zoom(ZOOMS[place])

    def _on_theme_changed(self) -> None:
        self._zoom.setCurrentIndex(ZOOMS.index(self.theme.zoom))

    def _on_font_chosen(self) -> None:
        family = self._family.currentText() if self._family.currentIndex() else ""
        self.theme.set_transcript_font(family, _SIZES[self._size.currentIndex()])
