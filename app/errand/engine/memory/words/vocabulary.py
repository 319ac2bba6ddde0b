"""The words that entries have, as FTS5 stores them: which exist, and those that a misspelt word may mean."""

import sqlite3
from collections.abc import Iterable, Sequence
from string import ascii_lowercase

from errand.engine.memory.words.spelling import MIN_COMPOUND_LENGTH, REVERSED_MARK, TOKENIZER

# A table of the connection alone: the words are those of the full text.
SCHEMA = "CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, entry_words, row);"
MIN_MISSPELT_LENGTH = 5
_MAX_MISSPELT_LENGTH = 24
# Letters that words with the same beginning share. A mistake in these is looked for letter by letter.
_MIN_BEGINNING_LENGTH = 2
_MAX_SAME_BEGINNING = 2_000
# What a stem lacks of its word.
_MAX_ENDING_LENGTH = 5
_IN_ONE_STATEMENT = 500
_AFTER_ALL = "\U0010ffff"
_ALPHABETS = (ascii_lowercase, "абвгдежзийклмнопрстуфхцчшщъыьэюя", "αβγδεζηθικλμνξοπρστυφχψω")


class Stemmer:
    """The words of FTS5: it folds and stems the words of a question as it does those of entries."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._connection.executescript(
            f"CREATE VIRTUAL TABLE words USING fts5(text, tokenize='{TOKENIZER}');"
            "CREATE VIRTUAL TABLE stems USING fts5vocab(words, instance);"
        )

    def close(self) -> None:
        self._connection.close()

    def stems(self, words: Iterable[str]) -> dict[str, str]:
        """Return one of these words, which are single ones without marks, by each of their stems."""
        every = list(words)
        self._connection.execute("DELETE FROM words")
        self._connection.execute("INSERT INTO words (text) VALUES (?)", (" ".join(every),))
        rows = self._connection.execute("SELECT term, offset FROM stems")
        return {term: every[offset] for term, offset in rows}


class Vocabulary:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._stemmer: Stemmer | None = None
        connection.executescript(SCHEMA)

    def close(self) -> None:
        if self._stemmer is not None:
            self._stemmer.close()

    def indexed(self, words: Iterable[str]) -> list[str]:
        """Return those of these words that entries have, those of most entries first."""
        stems = self._stems(words)
        return [stems[stem] for stem in self._by_count(tuple(stems))]

    def has_beginning(self, beginning: str, ending: str = "") -> bool:
        """Return True if entries have words that begin so; with `ending`, one that ends so, too."""
        return any(term.endswith(ending) for term in self._between(beginning, beginning))

    def meant_by(self, word: str, limit: int) -> list[str]:
        """Return words of entries that differ by one letter, or by two that changed places, the most common first.

        Its cost hardly grows with the vocabulary: words with the same beginning are compared, others looked up.
        """
        word = word.lower()
        alphabet = next((letters for letters in _ALPHABETS if word[0] in letters), "")
        if not (MIN_MISSPELT_LENGTH <= len(word) <= _MAX_MISSPELT_LENGTH and set(word) <= set(alphabet)):
            return []
        size = _MIN_BEGINNING_LENGTH
        while len(terms := self._between(word[:size], word[:size])) == _MAX_SAME_BEGINNING:
            size += 1
        near = [term for term in terms if _may_be_near(term, word)]
        beginnings = tuple(term[:-1] for term in near)
        edits = [edit for edit in _edits(word, alphabet, len(word)) if edit.startswith(beginnings)] if near else []
        stems = self._stems(edits) if edits else {}
        similar = {term: stems[term] for term in near if term in stems}
        similar |= self._with_other_beginning(word, alphabet, size)
        return [similar[term] for term in self._by_count(tuple(similar))[:limit]]

    def _with_other_beginning(self, word: str, alphabet: str, size: int) -> dict[str, str]:
        """Return the similar words that differ in the first letters, `size` so many, by their stems."""
        if len(word) > MIN_COMPOUND_LENGTH:  # words of this length can be found by their end
            ending = word[:size:-1]
            entire = [term[:-1][::-1] for term in self._between(ending, ending) if term.endswith(REVERSED_MARK)]
            edits = _edits(word, alphabet, size).intersection(entire)
        else:
            edits = _edits(word, alphabet, size)
        return self._stems(edits) if edits else {}

    def _between(self, first: str, last: str) -> list[str]:
        """Return the words from one beginning to another."""
        query = "SELECT term FROM temp.vocabulary WHERE term >= ? AND term < ? LIMIT ?"
        rows = self._connection.execute(query, (first, last + _AFTER_ALL, _MAX_SAME_BEGINNING))
        return [row[0] for row in rows]

    def _by_count(self, stems: Sequence[str]) -> list[str]:
        """Return those that entries have, those of most entries first."""
        rows: list[tuple[str, int]] = []
        for start in range(0, len(stems), _IN_ONE_STATEMENT):
            part = stems[start : start + _IN_ONE_STATEMENT]
            marks = ", ".join("?" * len(part))
            rows += self._connection.execute(f"SELECT term, doc FROM temp.vocabulary WHERE term IN ({marks})", part)
        return [term for term, _ in sorted(rows, key=lambda row: (-row[1], row[0]))]

    def _stems(self, words: Iterable[str]) -> dict[str, str]:
        if self._stemmer is None:
            self._stemmer = Stemmer()
        return self._stemmer.stems(words)


def _edits(word: str, alphabet: str, among: int) -> set[str]:
    """Return the words at a distance of one: a letter left out, added or replaced, or two that changed places.

    Only the first letters, `among` so many, are changed.
    """
    splits = [(word[:at], word[at:]) for at in range(among)]
    left_out = {before + after[1:] for before, after in splits}
    swapped = {before + after[1] + after[0] + after[2:] for before, after in splits if len(after) > 1}
    replaced = {before + letter + after[1:] for before, after in splits for letter in alphabet}
    added = {before + letter + after for before, after in splits for letter in alphabet}
    if among == len(word):
        added |= {word + letter for letter in alphabet}
    return left_out | swapped | replaced | added


def _may_be_near(term: str, word: str) -> bool:
    """Return True if a word that is at a distance of one may have this stem. Cheap: most have not.

    A stem is the beginning of its word, but for its last letter.
    """
    size = len(term) - 1
    if not len(word) - _MAX_ENDING_LENGTH <= size <= len(word) + 1:
        return False
    at = next((at for at in range(min(size, len(word))) if term[at] != word[at]), None)
    if at is None:
        return True
    rest = term[at + 1 : size]
    return (
        word.startswith(rest, at + 1)
        or word.startswith(rest, at)
        or word.startswith(term[at:size], at + 1)
        or (term[at + 1 : at + 2] == word[at] and word.startswith(term[at + 2 : size], at + 2))
    )
