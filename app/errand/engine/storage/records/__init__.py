"""One module for each stored record: its statements and its store.

Search is in search/. Start at nodes.py for the shape they share.
"""
