"""One module for each stored record: its statements and its store.

Full-text search is search/. Start at nodes.py for the shape they share.
"""
