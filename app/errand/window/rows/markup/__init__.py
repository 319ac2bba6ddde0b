"""What Qt's Markdown does not read: a few HTML tags, footnotes and formulas.

`source` replaces them by marker characters before Qt reads the text, `marks` by formats afterwards.
"""
