"""The virtual list: layout, scrolling, recycling of row views, selection.

What a row shows is `rows`. Start with view.py.
"""
