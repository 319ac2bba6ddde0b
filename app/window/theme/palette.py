"""Qt's palette from the tokens: what Fusion paints where the style sheet says nothing."""

from PySide6.QtGui import QColor, QPalette

from app.window.theme.tokens import Tokens


def palette_of(tokens: Tokens) -> QPalette:
    """All roles of all three groups; disabled text and buttons are grey."""
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
