"""The current theme: tokens, zoom, fonts, icons, and the palette and style sheet generated from them."""

import re
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
from errand.window.theme.tokens import DARK, LIGHT, SCALED, DesignTokens, scaled_tokens

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

ZOOMS = (80, 90, 100, 110, 125, 150, 175, 200)
"""In percent."""
_RADIO = 16
_CONTROLS = ("QPushButton", "QToolButton", "QLineEdit", "QComboBox", "QCheckBox", "QRadioButton", "QAbstractSpinBox")
# Lengths in the style sheet that grow with the zoom; borders of 1 and 2 pixels do not.
_LENGTH = re.compile(r"\b(?!0*[12]px)(\d+)px")


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


def make_style_sheet(tokens: DesignTokens, zoom: int = 100, conversation_size: int = 0) -> str:
    """`zoom` is in percent; `conversation_size` is that of controls in conversations, 0 if it is not another one.

    A `$name` in the template that is not a token raises KeyError.
    """
    template = _template()
    if zoom != 100:
        template = Template(_LENGTH.sub(lambda found: f"{round(int(found[1]) * zoom / 100)}px", template.template))
    radio = round(_RADIO * zoom / 100) // 2 + 1  # half of it with its border: Qt ignores a larger radius
    sheet = template.substitute(asdict(tokens), images=_FOLDER.as_posix(), radius_radio=radio)
    if not conversation_size:
        return sheet
    controls = ", ".join(f"#conversation {kind}" for kind in _CONTROLS)
    return f"{sheet}\n{controls} {{ font-size: {conversation_size}px; }}"


@cache
def _template() -> Template:
    return Template("\n".join((_FOLDER / name).read_text(encoding="utf-8") for name in _FILES))


def _set_style_sheet(application: QApplication, sheet: str) -> None:
    """Style each widget once.

    For a new sheet Qt styles each widget that it has styled before, and with it all widgets below it: those of a
    window as many times as they have ancestors. So it is made to forget all of them but the windows.
    """
    style = application.style()
    if application.styleSheet():
        style.unpolish(application)
        for window in application.topLevelWidgets():
            if window.testAttribute(Qt.WidgetAttribute.WA_WState_Polished):
                style.polish(window)
    application.setStyleSheet(sheet)


class Theme(QObject):
    """Follows the system by default. `changed` is emitted when tokens, fonts or motion change.

    `rescaled` gives the tokens before and after a change of sizes, before `changed`: see `zoom.rescale`.
    `conversations` is the theme of conversations, whose text has the size that the user chose.
    """

    changed = Signal()
    rescaled = Signal(object, object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.tokens: DesignTokens = LIGHT
        self.mode: Mode = "system"
        self.zoom = 100
        self.wanted_motion: bool | None = None
        self._system_moves = True
        self._reading_family = ""
        self._reading_size = LIGHT.size_reading
        self._application: QApplication | None = None
        self._icons: dict[tuple[str, str], QIcon] = {}
        self._conversations: ConversationTheme | None = None
        self._is_styled = False

    @property
    def conversations(self) -> "ConversationTheme":
        if self._conversations is None:
            self._conversations = ConversationTheme(self)
        return self._conversations

    def apply(self, application: QApplication) -> None:
        """Apply the theme to the application, now and whenever the system's colours change."""
        application.setStyle("Fusion")
        self._system_moves = application.style().styleHint(QStyle.StyleHint.SH_Widget_Animation_Duration) > 0
        self._application = application
        application.setWindowIcon(app_icon())
        application.styleHints().setColorScheme(_SCHEMES[self.mode])
        application.styleHints().colorSchemeChanged.connect(self._on_scheme_changed)
        self._style_application(application)

    def set_zoom(self, percent: int) -> None:
        """Set the size of everything; values beside `ZOOMS` become the nearest of them."""
        zoom = min(ZOOMS, key=lambda known: abs(known - percent))
        if zoom == self.zoom:
            return
        self.zoom = zoom
        self._restyle()

    def step_zoom(self, by: int) -> None:
        """The next larger or smaller zoom, if there is one; 0 resets it."""
        position = ZOOMS.index(self.zoom) + by
        self.set_zoom(ZOOMS[max(0, min(position, len(ZOOMS) - 1))] if by else 100)

    def pixels(self, length: int) -> int:
        """Return a length of a view in the current zoom."""
        return round(length * self.zoom / 100)

    def set_mode(self, mode: Mode) -> None:
        """Light, dark, or the system's; the window frame follows if the platform supports it."""
        if mode == self.mode:
            return
        self.mode = mode
        if self._application is not None:
            self._application.styleHints().setColorScheme(_SCHEMES[mode])
        self._restyle()

    @property
    def motion(self) -> bool:
        """True if animations are on."""
        return self._system_moves if self.wanted_motion is None else self.wanted_motion

    def set_motion(self, wanted: bool | None) -> None:
        """None follows the system."""
        self.wanted_motion = wanted
        self.changed.emit()

    def set_transcript_font(self, family: str, size: int) -> None:
        """Set the font of the transcript: "" is the system's; `size` in pixels."""
        if (family, size) != (self._reading_family, self._reading_size):
            self._reading_family, self._reading_size = family, size
            self._restyle()

    @property
    def reading_family(self) -> str:
        return self._reading_family

    @property
    def reading_size(self) -> int:
        """The size that the user chose, without the zoom."""
        return self._reading_size

    def reading_font(self, size: int = 0, *, mono: bool = False) -> QFont:
        """Return the transcript's font, in its configured size unless `size` is given."""
        font = self.font(size or self.tokens.size_reading, mono=mono)
        if self._reading_family and not mono:
            font.setFamilies([self._reading_family, *font.families()])
        return font

    def icon(self, name: str, colour: str = "text") -> QIcon:
        """Return the icon with that file name, tinted with the token `colour`; cached."""
        key = (name, colour)
        if key not in self._icons:
            self._icons[key] = render_icon(name, self.colour(colour), self.tokens.disabled)
        return self._icons[key]

    def colour(self, name: str) -> str:
        """Return the token of that name, for code that selects a colour by state."""
        value: object = getattr(self.tokens, name)
        assert isinstance(value, str)
        return value

    def person(self, color: Color) -> str:
        """Return the colour of an agent's name; the text colour for an agent without a colour."""
        return self.colour(f"person_{color}" if color else "text")

    def font(self, size: int, *, mono: bool = False, bold: bool = False) -> QFont:
        """Return the system's font, or its monospace font at 0.95, `size` pixels high. Bold is semi-bold."""
        kind = QFontDatabase.SystemFont.FixedFont if mono else QFontDatabase.SystemFont.GeneralFont
        font = QFontDatabase.systemFont(kind)
        font.setPixelSize(round(size * _MONO_RATIO) if mono else size)
        if bold:
            font.setWeight(QFont.Weight.DemiBold)
        return font

    def _on_scheme_changed(self, scheme: Qt.ColorScheme) -> None:
        if self._application is not None and self.mode == "system":
            self._style_application(self._application)

    def _style_application(self, application: QApplication) -> None:
        was_dark, before = self.tokens.dark, self.tokens
        self._take_tokens()
        if not self._is_styled or was_dark != self.tokens.dark:
            application.setPalette(make_palette(self.tokens))
        if not self._is_styled or before.size_base != self.tokens.size_base:
            application.setFont(self.font(self.tokens.size_base))
        size = self.conversations.tokens.size_base
        is_other = size != self.tokens.size_base
        _set_style_sheet(application, make_style_sheet(self.tokens, self.zoom, size if is_other else 0))
        self._is_styled = True
        self.changed.emit()

    def _scaled(self) -> DesignTokens:
        """Return the tokens of the mode, in the zoom and the user's size."""
        factor = self.zoom / 100
        tokens = scaled_tokens(DARK if self._is_dark() else LIGHT, factor, factor * self._text_factor)
        return replace(tokens, size_reading=round(self._reading_size * factor))

    @property
    def _text_factor(self) -> float:
        return 1.0

    def _is_dark(self) -> bool:
        if self.mode == "system" and self._application is not None:
            return self._application.styleHints().colorScheme() == Qt.ColorScheme.Dark
        return self.mode == "dark"

    def _restyle(self) -> None:
        if self._application is not None:
            self._style_application(self._application)
        else:
            self._take_tokens()
            self.changed.emit()

    def _take_tokens(self) -> None:
        before, self.tokens = self.tokens, self._scaled()
        self._icons.clear()
        if any(getattr(before, name) != getattr(self.tokens, name) for name in SCALED):
            self.rescaled.emit(before, self.tokens)


class ConversationTheme(Theme):
    """The theme of conversations: as the whole, but all text grows with the size that the user chose for reading."""

    def __init__(self, whole: Theme) -> None:
        super().__init__(whole)
        self._whole = whole
        self._follow()
        whole.rescaled.connect(self._follow)  # before the style sheet is set, as for all other widgets
        whole.changed.connect(self._on_whole_changed)

    @property
    def conversations(self) -> "ConversationTheme":
        return self

    @property
    def motion(self) -> bool:
        return self._whole.motion

    @property
    def _text_factor(self) -> float:
        return self._reading_size / LIGHT.size_reading

    def _is_dark(self) -> bool:
        return self._whole.tokens.dark

    def _on_whole_changed(self) -> None:
        self._follow()
        self.changed.emit()

    def _follow(self) -> None:
        self.mode, self.zoom = self._whole.mode, self._whole.zoom
        self._reading_family, self._reading_size = self._whole.reading_family, self._whole.reading_size
        self._take_tokens()
