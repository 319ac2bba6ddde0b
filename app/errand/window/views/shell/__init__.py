"""The main window: tabs, open conversations, banners, dialogs, command palette.

What a tab shows is `conversation`. Start with main_window.py.
"""
