"""A button that is an icon; its name is read aloud and is its tool tip."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QToolButton

from app.window.theme.look import set_look, set_tip
from app.window.theme.theme import Theme


class IconButton(QToolButton):
    """`large` takes the 20 px icon. `shortcut` is only named in the tool tip, not bound."""

    def __init__(
        self,
        theme: Theme,
        icon: str,
        name: str,
        *,
        large: bool = False,
        primary: bool = False,
        shortcut: str = "",
    ) -> None:
        super().__init__()
        self._theme = theme
        self._icon = icon
        self._primary = primary
        self._shortcut = shortcut
        pixels = theme.tokens.icon_large if large else theme.tokens.icon_small
        self.setIconSize(QSize(pixels, pixels))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.ArrowCursor)
        if primary:
            set_look(self, "look", "primary")
        self.set_face(icon, name)
        theme.changed.connect(self._on_theme_changed)

    def set_face(self, icon: str, name: str) -> None:
        """Become another button, as send becomes stop."""
        self._icon = icon
        self.setAccessibleName(name)
        set_tip(self, f"{name} ({self._shortcut})" if self._shortcut else name)
        self._on_theme_changed()

    def _on_theme_changed(self) -> None:
        self.setIcon(self._theme.icon(self._icon, "on_accent" if self._primary else "muted"))
