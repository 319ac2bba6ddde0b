"""What PostgreSQL needs beside the tables: the guards of the audit, and full-text search by `tsvector`.

The index finds what FTS5 finds on SQLite: words are runs of letters and digits, without case and diacritics.
"""

# One function for each trigger's condition, which cannot hold a query itself.
_GUARDS = (
    """
    CREATE FUNCTION errand_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END $$
    """,
    """
    CREATE FUNCTION errand_keep_execution() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'DELETE' AND EXISTS (
            SELECT 1 FROM removals JOIN tasks USING (conversation_id) WHERE tasks.id = OLD.task_id
        ) THEN RETURN OLD; END IF;
        IF TG_OP = 'UPDATE' AND EXISTS (
            SELECT 1 FROM forgets JOIN tasks USING (conversation_id) WHERE tasks.id = OLD.task_id
        ) THEN RETURN NEW; END IF;
        RAISE EXCEPTION 'tool_executions is append-only';
    END $$
    """,
    """
    CREATE FUNCTION errand_keep_grant() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF errand_json(OLD.body) ->> 'scope' = 'conversation' AND EXISTS (
            SELECT 1 FROM removals WHERE conversation_id = errand_json(OLD.body) ->> 'scopeId'
        ) THEN RETURN OLD; END IF;
        RAISE EXCEPTION 'grants is append-only';
    END $$
    """,
    "CREATE TRIGGER tool_executions_stay BEFORE UPDATE OR DELETE ON tool_executions "
    "FOR EACH ROW EXECUTE FUNCTION errand_keep_execution()",
    "CREATE TRIGGER grants_no_update BEFORE UPDATE ON grants FOR EACH ROW EXECUTE FUNCTION errand_refuse()",
    "CREATE TRIGGER grants_stay BEFORE DELETE ON grants FOR EACH ROW EXECUTE FUNCTION errand_keep_grant()",
    "CREATE TRIGGER memory_log_stays BEFORE UPDATE OR DELETE ON memory_log "
    "FOR EACH ROW EXECUTE FUNCTION errand_refuse()",
)

# jsonb cannot hold the escape of NUL; a backslash before it may be escaped itself.
_PARSED = r"""
    (CASE WHEN position('\u0000' IN body) = 0 THEN body
    ELSE regexp_replace(body, '(?<!\\)((?:\\\\)*)\\u0000', '\1', 'g') END :: jsonb)
"""
_JSON = f"""
CREATE FUNCTION errand_json(body text) RETURNS jsonb LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT {_PARSED}
$$
"""

_MARKS = r"\u0300-\u036f"
# What is no letter, digit or number, as in FTS5's tokenizer: ASCII, Latin-1, and the blocks of punctuation and symbols.
_SEPARATORS = (
    r"\u0001-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u00a9\u00ab-\u00b1\u00b4\u00b6-\u00b8\u00bb\u00bf\u00d7\u00f7"
    r"\u2000-\u206f\u20a0-\u20cf\u2190-\u245f\u2500-\u2775\u2794-\u2bff\u2e00-\u2e7f\u3000-\u3004\u3008-\u3020"
    r"\ufe10-\ufe1f\ufe30-\ufe6f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65\U0001f000-\U0001faff"
)
_FOLDED = f"""
    regexp_replace(lower(normalize(regexp_replace(normalize(words, NFD), '[{_MARKS}]+', '', 'g'), NFC)),
    '[{_SEPARATORS}]+', ' ', 'g')
"""
_FOLD = f"""
CREATE FUNCTION errand_fold(words text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT {_FOLDED}
$$
"""
# Functions of an index call no others of ours: where it is built (by pg_restore, since 17 always) they are not found.
_VECTOR = f"""
CREATE FUNCTION errand_vector(words text) RETURNS tsvector LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT to_tsvector('simple'::regconfig, {_FOLDED})
$$
"""
_QUERY = """
CREATE FUNCTION errand_query(phrase text, unfinished boolean) RETURNS tsquery
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT CASE WHEN unfinished AND numnode(found) > 0 THEN (found :: text || ':*') :: tsquery ELSE found END
    FROM (SELECT phraseto_tsquery('simple'::regconfig, errand_fold(phrase)) AS found) AS parsed
$$
"""
# The same texts and lengths as in the view `node_texts` of SQLite.
_TEXT = """
CREATE FUNCTION errand_text(body jsonb) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT left(string_agg(left(CASE block ->> 'type'
        WHEN 'toolCall' THEN (
            SELECT string_agg(found #>> '{}', E'\\n')
            FROM jsonb_path_query(block -> 'arguments', 'strict $.** ? (@.type() == "string")') AS found
        )
        WHEN 'file' THEN block ->> 'name'
        WHEN 'image' THEN block ->> 'name'
        ELSE block ->> 'text' END, 8000), E'\\n' ORDER BY place), 32000)
    FROM jsonb_array_elements(body -> 'blocks') WITH ORDINALITY AS blocks (block, place)
    WHERE block ->> 'type' IN ('text', 'toolCall', 'toolResult', 'file', 'image')
$$
"""
_FACET = r"""
CREATE FUNCTION errand_facet(kind text, name text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT kind || lower(regexp_replace(coalesce(name, ''), '[-_./:]', '', 'g'))
$$
"""
_FACETS = """
CREATE FUNCTION errand_facets(role text, body jsonb) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE
        WHEN role = 'user' AND body ->> 'author' <> 'engine' THEN ARRAY['fromuser']
        WHEN role = 'assistant' THEN ARRAY['fromagent', errand_facet('by', body ->> 'author')]
        ELSE ARRAY[] :: text[] END
    || ARRAY(
        SELECT errand_facet('tool', block ->> 'tool') FROM jsonb_array_elements(body -> 'blocks') AS block
        WHERE block ->> 'type' IN ('toolCall', 'toolResult')
    )
$$
"""
_TABLE = """
CREATE TABLE node_texts (
    number bigint PRIMARY KEY REFERENCES nodes (number) ON DELETE CASCADE,
    text text,
    words tsvector,
    facets text[] NOT NULL
)
"""
# A streaming node changes often; it is indexed once it is finished.
_INDEX_NODE = """
CREATE FUNCTION errand_index_node() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    body jsonb;
    said text;
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO node_days AS known VALUES (left(NEW.created_at, 10), NEW.number, NEW.number) ON CONFLICT (day)
        DO UPDATE SET first = least(known.first, excluded.first), last = greatest(known.last, excluded.last);
    END IF;
    IF NEW.status = 'streaming' THEN
        IF TG_OP = 'UPDATE' AND OLD.status <> 'streaming' THEN
            DELETE FROM node_texts WHERE number = NEW.number;
        END IF;
        RETURN NULL;
    END IF;
    body := errand_json(NEW.body);
    said := errand_text(body);
    INSERT INTO node_texts VALUES (NEW.number, said, errand_vector(said), errand_facets(NEW.role, body))
    ON CONFLICT (number) DO UPDATE SET text = excluded.text, words = excluded.words, facets = excluded.facets;
    RETURN NULL;
END $$
"""
_NAME = f"""
CREATE FUNCTION errand_name(body text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT lower(({_PARSED} ->> 'name') COLLATE "C")
$$
"""
_SEARCH = (
    _FOLD,
    _VECTOR,
    _QUERY,
    _TEXT,
    _FACET,
    _FACETS,
    _NAME,
    _TABLE,
    # Changes gather in a list (in kB) that each search reads: short enough for it, long enough to be sorted in at once.
    "CREATE INDEX node_texts_by_word ON node_texts USING gin (words) WITH (gin_pending_list_limit = 256)",
    "CREATE INDEX node_texts_by_facet ON node_texts USING gin (facets)",
    _INDEX_NODE,
    "CREATE TRIGGER nodes_indexed AFTER INSERT OR UPDATE ON nodes FOR EACH ROW EXECUTE FUNCTION errand_index_node()",
    "CREATE INDEX conversations_by_title ON conversations USING gin (errand_vector(title))",
    "CREATE INDEX agents_by_name ON agents (errand_name(body))",
    """CREATE INDEX conversations_with_former ON conversations (id) WHERE strpos(body, '"former":[{') > 0""",
)

# In this order, after the tables.
CREATE = (_JSON, *_GUARDS, *_SEARCH)
