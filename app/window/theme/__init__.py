"""How everything looks: design tokens, palette, style sheet, icons, painting.

Widgets are elsewhere. Start with tokens.py.
"""
