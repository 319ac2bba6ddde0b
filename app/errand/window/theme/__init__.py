"""The visual design: tokens, palette, style sheet, icons, painting.

Widgets are in `widgets`. Start with tokens.py.
"""
