"""The long histories with pages of an assistant around what was said: one store for each split.

People ask an assistant for help and tell of themselves in passing, often in a message that ends with a question, and
get a page of 1,000 to 3,000 characters on the subject. After half of the pages come a bare question and another page.
"""

import random
import re
from collections.abc import Sequence
from datetime import timedelta

from errand.engine.memory.ranking.question import read_question
from tests.benchmarks.memory.histories import Entry, History, Question, Split

_SEED = 11
_MIN_LENGTH, _MAX_LENGTH = 1_000, 3_000
_MIN_SENTENCE_WORDS = 6
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_TOPICS = 8
_ASKS = (
    "Can you help me with {0}?",
    "What would you suggest for {0} and {1}?",
    "Do you have any tips about {0}?",
    "Could you explain how {0} goes together with {1}?",
    "Can you recommend something, maybe also for {0}?",
)
_BARE = (
    "Thanks, that helps! Can you tell me more about {0} and {1}?",
    "What else should I know about {0}?",
    "I'll try that. How do I best start with {0}?",
    "That sounds good. Which of these matters most for {0}, and is {1} worth it?",
)


def long_pages(histories: Sequence[History], split: Split) -> History:
    """Return the long histories of a split as one, padded with what assistants said in the other split."""
    rnd = random.Random(_SEED)
    chosen = [history for history in histories if history.style == "long" and history.split == split]
    padding = [text for history in histories if history.split != split for text in _sentences(history)]
    entries: list[Entry] = []
    questions: list[Question] = []
    for history in chosen:
        prefix = f"{history.name}/"
        for entry in history.entries:
            entries += _with_page(entry, prefix, padding, rnd)
        for question in history.questions:
            gold = tuple(prefix + key for key in question.gold)
            questions.append(Question(prefix + question.question, question.kind, question.text, gold))
    return History(f"pages-{split}", split, "", tuple(entries), tuple(questions), "long")


def _sentences(history: History) -> list[str]:
    if history.style != "long":
        return []
    texts = (text for entry in history.entries if entry.role == "agent" for text in _SENTENCE.split(entry.text))
    return [text.strip(" -*") for text in texts if len(text.split()) >= _MIN_SENTENCE_WORDS]


def _with_page(entry: Entry, prefix: str, padding: Sequence[str], rnd: random.Random) -> list[Entry]:
    """Return the entry as it stands in the store, and the bare question and page after it, if there are."""
    topics = [word for word in read_question(entry.text).terms if word.isalpha()]
    rnd.shuffle(topics)
    topics = [*topics[:_TOPICS], "this", "that"]
    moved = _Moved(entry, prefix, 0)
    if entry.role != "agent":
        is_asking = "?" in entry.text[-200:] or rnd.random() < 0.3
        text = entry.text if is_asking else f"{entry.text} {rnd.choice(_ASKS).format(*topics)}"
        return [moved.entry("user", "user", text)]
    page = moved.entry("assistant", "agent", _page(entry.text, topics, padding, rnd))
    if rnd.random() < 0.5:
        return [page]
    bare = _Moved(entry, prefix, 1).entry("user", "user", rnd.choice(_BARE).format(*topics))
    return [page, bare, _Moved(entry, prefix, 2).entry("assistant", "agent", _page("", topics, padding, rnd))]


class _Moved:
    """An entry's place in the store of all histories; `after` counts the turns that follow it there."""

    def __init__(self, entry: Entry, prefix: str, after: int) -> None:
        self._entry, self._prefix, self._after = entry, prefix, after

    def entry(self, speaker: str, role: str, text: str) -> Entry:
        key = f"{self._prefix}{self._entry.id}" + (f"+{self._after}" if self._after else "")
        session, at = f"{self._prefix}{self._entry.session}", self._entry.at + timedelta(seconds=self._after)
        return Entry(key, session, speaker, "user" if role == "user" else "agent", at, text)


def _page(text: str, topics: Sequence[str], padding: Sequence[str], rnd: random.Random) -> str:
    """Return a page of points on the subject, around the text."""
    points = [text] if text else []
    length = rnd.randint(_MIN_LENGTH, _MAX_LENGTH)
    while sum(map(len, points)) < length:
        point = rnd.choice(padding)
        if rnd.random() < 0.6:
            point = f"**{rnd.choice(topics).capitalize()} and {rnd.choice(topics)}**: {point}"
        points.insert(rnd.randint(0, len(points)), f"- {point}")
    return "\n".join(points)
