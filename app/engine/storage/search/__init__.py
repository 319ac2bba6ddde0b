"""Search over nodes and titles: query syntax, scope, FTS5 and LIKE, context of a hit.

Index and triggers are in sqlite/search_index.py. Start at query.py.
"""
