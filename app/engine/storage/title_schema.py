"""The full-text index of SQLite over the titles of conversations, and the triggers that keep it."""

# Newest change last: a conversation that changes is put in anew, so hits come in the list's order and nothing sorts
# them. `word` is the id as a word, by which a row is found again; rows of conversations move when SQLite packs them.
_INDEX = """
CREATE VIRTUAL TABLE title_search USING fts5(
    id UNINDEXED, word, title, columnsize=0, prefix='1 2 3', tokenize='unicode61 remove_diacritics 2'
)
"""

_ADD = """
INSERT INTO title_search (id, word, title)
VALUES (new.id, replace(replace(new.id, '-', ''), '_', ''), new.title);
"""

_REMOVE = """
DELETE FROM title_search WHERE id = old.id AND rowid IN (
    SELECT rowid FROM title_search
    WHERE title_search MATCH 'word : "' || replace(replace(replace(old.id, '-', ''), '_', ''), '"', '') || '"'
);
"""

_MOVED = "old.title <> new.title OR old.updated_at <> new.updated_at"

CREATE_TITLES = (
    _INDEX,
    f"CREATE TRIGGER titles_indexed AFTER INSERT ON conversations BEGIN {_ADD} END",
    f"CREATE TRIGGER titles_moved AFTER UPDATE ON conversations WHEN {_MOVED} BEGIN {_REMOVE} {_ADD} END",
    f"CREATE TRIGGER titles_deleted AFTER DELETE ON conversations BEGIN {_REMOVE} END",
)
