"""The short histories as long turns: what is said in one go is joined, an agent's answers are padded to a page.

People who talk to an assistant write a few sentences and get a page, of which they ask for one line weeks later; it
stands anywhere in it.
"""

import random
import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from errand.engine.memory.ranking.question import read_question
from tests.benchmarks.memory.histories import Entry, History, Question, Split

_SEED = 5
# What a person says before an agent's page, in turns of the history.
_TOGETHER = 2
# Words of an agent's page, at least.
_MIN_WORDS, _MAX_WORDS = 120, 320
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_MIN_TURN_WORDS = 6
_TOPICS = 10


def long_turns(histories: Sequence[History], split: Split) -> History:
    """All short histories of a split as one; what agents said in the other split is the padding, made to fit."""
    histories = [history for history in histories if history.style == "short"]
    rnd = random.Random(_SEED)
    padding = [text for other in histories if other.split != split for text in _sentences(other)]
    entries: list[Entry] = []
    questions: list[Question] = []
    for history in histories:
        if history.split != split:
            continue
        moved: dict[str, str] = {}
        for session, turns in groupby(history.entries, key=lambda entry: entry.session):
            for parts in _blocks(turns):
                key, at = f"{history.name}/{len(entries)}", parts[0].at
                is_person = parts[0].role == "user"
                text = " ".join(part.text for part in parts) if is_person else _page(parts, entries[-1:], padding, rnd)
                role = "user" if is_person else "agent"
                entries.append(Entry(key, f"{history.name}/{session}", role, role, at, text))
                moved |= {part.id: key for part in parts}
        for question in history.questions:
            gold = tuple(dict.fromkeys(moved[key] for key in question.gold))
            questions.append(Question(f"{history.name}/{question.question}", question.kind, question.text, gold))
    return History(f"long-{split}", split, "", tuple(entries), tuple(questions))


def _sentences(history: History) -> list[str]:
    sentences = (text for entry in history.entries if entry.role == "agent" for text in _SENTENCE.split(entry.text))
    return [text for text in sentences if len(text.split()) >= _MIN_TURN_WORDS]


def _blocks(turns: Iterable[Entry]) -> list[list[Entry]]:
    """Group turns into what a person says and what agents and tools then do; two turns of the person go together."""
    blocks: list[list[Entry]] = [[]]
    for turn in turns:
        person_turns = sum(entry.role == "user" for entry in blocks[-1])
        if turn.role == "user" and person_turns >= _TOGETHER and person_turns < len(blocks[-1]):
            blocks.append([])
        blocks[-1].append(turn)
    halves = (
        [entry for entry in block if (entry.role == "user") is person] for block in blocks for person in (True, False)
    )
    return [half for half in halves if half]


def _page(parts: Sequence[Entry], before: Sequence[Entry], padding: Sequence[str], rnd: random.Random) -> str:
    """Return what agents and tools said, in its order, between points that say something on the same subject."""
    topics = [word for word in read_question(before[0].text).terms if word.isalpha()] if before else []
    rnd.shuffle(topics)
    topics = topics[:_TOPICS]
    lines = [part.text for part in parts]
    word_count = rnd.randint(_MIN_WORDS, _MAX_WORDS)
    while sum(len(line.split()) for line in lines) < word_count:
        point = rnd.choice(padding)
        if topics and rnd.random() < 0.5:
            point = f"**{rnd.choice(topics).capitalize()} and {rnd.choice(topics)}**: {point}"
        lines.insert(rnd.randint(0, len(lines)), f"- {point}")
    head = f"Here is what I can say about {', '.join(topics[:5])}:" if topics else "Here is what I found:"
    return "\n".join((head, *lines))
