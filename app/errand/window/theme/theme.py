"""The current theme: tokens, fonts, icons, and the palette and style sheet generated from them."""

from dataclasses import asdict, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Literal

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QIcon, QPalette
from PySide6.QtWidgets import QApplication, QStyle

from errand.protocol.agents import Color
from errand.window.theme.icons import app_icon, render_icon
from errand.window.theme.tokens import DARK, LIGHT, DesignTokens

_FOLDER = Path(str(files("errand.resources") / "theme"))
_FILES = ("window.qss", "views.qss")
"""Style-sheet templates: for all controls, then for single views."""

Mode = Literal["light", "dark", "system"]
_SCHEMES = {
    "light": Qt.ColorScheme.Light,
    "dark": Qt.ColorScheme.Dark,
    "system": Qt.ColorScheme.Unknown,
}
_MONO_RATIO = 0.95


def make_palette(tokens: DesignTokens) -> QPalette:
    """Sets all roles of all three colour groups; disabled text and buttons are grey."""
    palette = QPalette()
    role = QPalette.ColorRole
    colours = {
        role.Window: tokens.page,
        role.WindowText: tokens.text,
        role.Base: tokens.raised,
        role.AlternateBase: tokens.panel,
        role.Text: tokens.text,
        role.PlaceholderText: tokens.muted,
        role.Button: tokens.raised,
        role.ButtonText: tokens.text,
        role.BrightText: tokens.failed,
        role.ToolTipBase: tokens.raised,
        role.ToolTipText: tokens.text,
        role.Highlight: tokens.accent,
        role.HighlightedText: tokens.on_accent,
        role.Accent: tokens.accent,
        role.Link: tokens.link,
        role.LinkVisited: tokens.link,
        role.Light: tokens.hairline,
        role.Midlight: tokens.hairline,
        role.Mid: tokens.outline,
        role.Dark: tokens.outline,
        role.Shadow: tokens.outline,
    }
    for which, colour in colours.items():
        palette.setColor(which, QColor(colour))
    for which in (role.WindowText, role.Text, role.ButtonText, role.PlaceholderText):
        palette.setColor(QPalette.ColorGroup.Disabled, which, QColor(tokens.disabled))
    palette.setColor(QPalette.ColorGroup.Disabled, role.Highlight, QColor(tokens.outline))
    return palette


def make_style_sheet(tokens: DesignTokens) -> str:
    """A `$name` in the template that is not a token raises KeyError."""
    return _template().substitute(asdict(tokens), images=_FOLDER.as_posix())


@cache
def _template() -> Template:
    return Template("\n".join((_FOLDER / name).read_text(encoding="utf-8") for name in _FILES))


class Theme(QObject):
    """Follows the system by default. `changed` is emitted when tokens, fonts or motion change."""

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.tokens: DesignTokens = LIGHT
        self.mode: Mode = "system"
        self.wanted_motion: bool | None = None
        self._system_moves = True
        self._reading_family = ""
        self._reading_size = LIGHT.size_reading
        self._application: QApplication | None = None
        self._icons: dict[tuple[str, str], QIcon] = {}

    def apply(self, application: QApplication) -> None:
        """Apply the theme to the application, now and whenever the system's colours change."""
        application.setStyle("Fusion")
        application.setFont(self.font(self.tokens.size_base))
        self._system_moves = application.style().styleHint(QStyle.StyleHint.SH_Widget_Animation_Duration) > 0
        self._application = application
        application.setWindowIcon(app_icon())
        application.styleHints().setColorScheme(_SCHEMES[self.mode])
        application.styleHints().colorSchemeChanged.connect(self._on_scheme_changed)
        self._style_application(application)

    def set_mode(self, mode: Mode) -> None:
        """Light, dark, or the system's; the window frame follows if the platform supports it."""
        if mode == self.mode:
            return
        self.mode = mode
        if self._application is not None:
            self._application.styleHints().setColorScheme(_SCHEMES[mode])
            self._style_application(self._application)
        else:
            self._set_tokens(DARK if mode == "dark" else LIGHT)

    @property
    def motion(self) -> bool:
        """Whether animations are on."""
        return self._system_moves if self.wanted_motion is None else self.wanted_motion

    def set_motion(self, wanted: bool | None) -> None:
        """None follows the system."""
        self.wanted_motion = wanted
        self.changed.emit()

    def set_transcript_font(self, family: str, size: int) -> None:
        """Set the font of the transcript: "" is the system's; `size` in pixels."""
        if (family, size) != (self._reading_family, self._reading_size):
            self._reading_family, self._reading_size = family, size
            self._set_tokens(self.tokens)

    @property
    def reading_family(self) -> str:
        return self._reading_family

    def reading_font(self, size: int = 0, *, mono: bool = False) -> QFont:
        """The transcript's font, in its configured size unless `size` is given."""
        font = self.font(size or self.tokens.size_reading, mono=mono)
        if self._reading_family and not mono:
            font.setFamilies([self._reading_family, *font.families()])
        return font

    def icon(self, name: str, colour: str = "text") -> QIcon:
        """The icon with that file name, tinted with the token `colour`; cached."""
        key = (name, colour)
        if key not in self._icons:
            self._icons[key] = render_icon(name, self.colour(colour), self.tokens.disabled)
        return self._icons[key]

    def colour(self, name: str) -> str:
        """The token of that name, for code that selects a colour by state."""
        value: object = getattr(self.tokens, name)
        assert isinstance(value, str)
        return value

    def person(self, color: Color) -> str:
        """The colour of an agent's name; the text colour for an agent without a colour."""
        return self.colour(f"person_{color}" if color else "text")

    def font(self, size: int, *, mono: bool = False, bold: bool = False) -> QFont:
        """The system's font, or its monospace font at 0.95, `size` pixels high. Bold is semi-bold."""
        kind = QFontDatabase.SystemFont.FixedFont if mono else QFontDatabase.SystemFont.GeneralFont
        font = QFontDatabase.systemFont(kind)
        font.setPixelSize(round(size * _MONO_RATIO) if mono else size)
        if bold:
            font.setWeight(QFont.Weight.DemiBold)
        return font

    def _on_scheme_changed(self, scheme: Qt.ColorScheme) -> None:
        if self._application is not None:
            self._style_application(self._application)

    def _style_application(self, application: QApplication) -> None:
        tokens = DARK if self._is_dark(application) else LIGHT
        application.setPalette(make_palette(tokens))
        application.setStyleSheet(make_style_sheet(tokens))
        self._set_tokens(tokens)

    def _is_dark(self, application: QApplication) -> bool:
        if self.mode == "system":
            return application.styleHints().colorScheme() == Qt.ColorScheme.Dark
        return self.mode == "dark"

    def _set_tokens(self, tokens: DesignTokens) -> None:
        self.tokens = replace(tokens, size_reading=self._reading_size)
        self._icons.clear()
        self.changed.emit()
