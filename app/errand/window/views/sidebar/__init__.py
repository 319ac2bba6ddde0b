"""The sidebar: inbox, conversation list, search results, archive. Start with sidebar.py."""
