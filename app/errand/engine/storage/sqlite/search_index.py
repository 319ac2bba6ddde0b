"""The FTS5 indexes over nodes and titles, and their triggers."""

# Sender and tools of a node as search terms: "fromuser", "fromagent bya1", "toolshell". Separator characters are
# removed from names.
_WITHOUT_PUNCTUATION = "replace(replace(replace(replace(replace({0}, '-', ''), '_', ''), '.', ''), '/', ''), ':', '')"
_FACETS = f"""
CASE role
WHEN 'user' THEN CASE json_extract(body, '$.author') WHEN 'engine' THEN '' ELSE 'fromuser' END
WHEN 'assistant' THEN 'fromagent by' || {_WITHOUT_PUNCTUATION.format("json_extract(body, '$.author')")}
ELSE '' END || coalesce((
    SELECT ' ' || group_concat('tool' || {_WITHOUT_PUNCTUATION.format("json_extract(block.value, '$.tool')")}, ' ')
    FROM json_each(nodes.body, '$.blocks') AS block
    WHERE json_extract(block.value, '$.type') IN ('toolCall', 'toolResult')
), '')
"""

# Text, tool arguments (their strings), tool results and names of attached files: 8,000 characters of a block, 32,000 of
# a node.
_VIEW = f"""
CREATE VIEW node_texts AS
SELECT number, replace(replace(conversation_id, '-', ''), '_', '') AS conversation, {_FACETS} AS facets, (
    SELECT substr(group_concat(substr(
        CASE json_extract(block.value, '$.type')
        WHEN 'toolCall' THEN (
            SELECT group_concat(atom, char(10)) FROM json_tree(block.value, '$.arguments') WHERE type = 'text'
        )
        WHEN 'file' THEN json_extract(block.value, '$.name')
        WHEN 'image' THEN json_extract(block.value, '$.name')
        ELSE json_extract(block.value, '$.text') END,
        1, 8000), char(10)), 1, 32000)
    FROM json_each(nodes.body, '$.blocks') AS block
    WHERE json_extract(block.value, '$.type') IN ('text', 'toolCall', 'toolResult', 'file', 'image')
) AS text
FROM nodes
"""

# The conversation is an indexed term too: searching inside one does not scan the hits of all others. Results come
# newest first, so there is no ranking and no column sizes are stored. Prefixes from 3 letters have a separate index:
# without it, a common prefix merges the lists of all terms it matches.
_INDEX = """
CREATE VIRTUAL TABLE node_search USING fts5(
    conversation, facets, text, content='node_texts', content_rowid='number',
    columnsize=0, prefix='3 4 5', tokenize='unicode61 remove_diacritics 2'
)
"""

# A merge of the index rewrites at least 64 of its pages within one insert or delete, and every commit of others waits
# for it: with the default of 4,050 bytes a page up to 30 ms, with this 10.
_PAGE_SIZE = "INSERT INTO node_search (node_search, rank) VALUES ('pgsz', 1000)"

# Nodes that wait for the index. A commit that writes to it writes about four of its pages, so they enter it together:
# as many as take a few milliseconds, when a task ends, and before a search (`Fts5Index.complete`).
_WAITING = "CREATE TABLE node_unindexed (number INTEGER PRIMARY KEY)"
_MAX_WAITING = 16

# Statements, for triggers and for `Fts5Index.complete`.
INDEX_WAITING = (
    """
    INSERT INTO node_search (rowid, conversation, facets, text)
    SELECT number, conversation, facets, text FROM node_texts
    WHERE number IN (SELECT number FROM node_unindexed) ORDER BY number
    """,
    "DELETE FROM node_unindexed",
)
_INDEX_WAITING = "".join(f"{statement};" for statement in INDEX_WAITING)

_ADD = "INSERT OR IGNORE INTO node_unindexed VALUES (new.number);"

_REMOVE = """
INSERT INTO node_search (node_search, rowid, conversation, facets, text)
SELECT 'delete', number, conversation, facets, text FROM node_texts
WHERE number = old.number AND NOT EXISTS (SELECT 1 FROM node_unindexed WHERE number = old.number);
DELETE FROM node_unindexed WHERE number = old.number;
"""

# A streaming node changes often; it is indexed once it is finished.
_TRIGGERS = (
    f"CREATE TRIGGER nodes_indexed AFTER INSERT ON nodes WHEN new.status <> 'streaming' BEGIN {_ADD} END",
    f"CREATE TRIGGER nodes_leave BEFORE UPDATE ON nodes WHEN old.status <> 'streaming' BEGIN {_REMOVE} END",
    f"CREATE TRIGGER nodes_return AFTER UPDATE ON nodes WHEN new.status <> 'streaming' BEGIN {_ADD} END",
    f"CREATE TRIGGER nodes_deleted BEFORE DELETE ON nodes WHEN old.status <> 'streaming' BEGIN {_REMOVE} END",
    "CREATE TRIGGER nodes_wait AFTER INSERT ON node_unindexed "
    f"WHEN (SELECT count(*) FROM node_unindexed) >= {_MAX_WAITING} BEGIN {_INDEX_WAITING} END",
    "CREATE TRIGGER nodes_rest AFTER UPDATE OF ended_at ON tasks "
    f"WHEN new.ended_at IS NOT NULL AND EXISTS (SELECT 1 FROM node_unindexed) BEGIN {_INDEX_WAITING} END",
)

# The end of the range goes ahead, so that the day's row is written for some nodes only.
_DATED = """
CREATE TRIGGER nodes_dated AFTER INSERT ON nodes WHEN NOT EXISTS (
    SELECT 1 FROM node_days WHERE day = substr(new.created_at, 1, 10) AND new.number BETWEEN first AND last
) BEGIN
INSERT INTO node_days VALUES (substr(new.created_at, 1, 10), new.number, new.number + 100)
ON CONFLICT (day) DO UPDATE SET first = min(first, excluded.first), last = max(last, excluded.last);
END
"""

_AGENTS = "CREATE INDEX agents_by_name ON agents (lower(json_extract(body, '$.name')))"

# Conversations with deleted agents, which can still be found by their names.
WITH_FORMER = """instr(body, '"former":[{') > 0"""
_FORMER = f"CREATE INDEX conversations_with_former ON conversations (id) WHERE {WITH_FORMER}"

CREATE_SEARCH = (_VIEW, _INDEX, _PAGE_SIZE, _WAITING, *_TRIGGERS, _DATED, _AGENTS, _FORMER)

# Newest change last: a changed conversation is inserted again, so hits come in list order without sorting. `word` is
# the id as a search term, to find its row; rowids of conversations change when SQLite vacuums.
_TITLE_INDEX = """
CREATE VIRTUAL TABLE title_search USING fts5(
    id UNINDEXED, word, title, columnsize=0, prefix='1 2 3', tokenize='unicode61 remove_diacritics 2'
)
"""

_ADD_TITLE = """
INSERT INTO title_search (id, word, title)
VALUES (new.id, replace(replace(new.id, '-', ''), '_', ''), new.title);
"""

_REMOVE_TITLE = """
DELETE FROM title_search WHERE id = old.id AND rowid IN (
    SELECT rowid FROM title_search
    WHERE title_search MATCH 'word : "' || replace(replace(replace(old.id, '-', ''), '_', ''), '"', '') || '"'
);
"""

_TITLE_OR_TIME_CHANGED = "old.title <> new.title OR old.updated_at <> new.updated_at"

CREATE_TITLES = (
    _TITLE_INDEX,
    f"CREATE TRIGGER titles_indexed AFTER INSERT ON conversations BEGIN {_ADD_TITLE} END",
    f"CREATE TRIGGER titles_moved AFTER UPDATE ON conversations WHEN {_TITLE_OR_TIME_CHANGED} "
    f"BEGIN {_REMOVE_TITLE} {_ADD_TITLE} END",
    f"CREATE TRIGGER titles_deleted AFTER DELETE ON conversations BEGIN {_REMOVE_TITLE} END",
)


def facet(kind: str, name: str) -> str:
    """Return the index term of a sender or a tool; must match the view."""
    return kind + name.translate({ord(mark): None for mark in "-_./:"})


def index_word(conversation_id: str) -> str:
    """Return the index term of a conversation's id; must match the view."""
    return conversation_id.replace("-", "").replace("_", "")
