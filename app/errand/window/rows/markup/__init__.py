"""What Qt's Markdown does not read or paint: a few HTML tags, footnotes, formulas, pictures of the web.

`source` replaces tags, footnotes and formulas by marker characters before Qt reads the text, `marks` by formats
afterwards. Formulas and pictures are objects in the document, see `text_objects`.
"""
