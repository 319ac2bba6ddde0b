"""Search over nodes and titles: query syntax, scope, the indexes of SQLite and PostgreSQL, context of a hit.

Indexes and triggers are in sqlite/search_index.py and postgres/schema.py. Start at full_text.py.
"""
