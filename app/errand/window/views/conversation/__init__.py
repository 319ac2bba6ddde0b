"""One conversation in a tab or a window: transcript, find bar, tree splitter, its dialogs.

Input is `composer`. Start with conversation_view.py.
"""
