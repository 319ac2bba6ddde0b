"""Branches of a conversation: tree panel, comparison, asking several models. Start with tree_panel.py."""
