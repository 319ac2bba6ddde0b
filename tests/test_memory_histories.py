"""The work histories of the retrieval benchmark are whole, varied and large enough to measure with."""

from collections import Counter
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest

from tests.benchmarks.memory.histories import (
    FOLDER,
    QUESTION_KINDS,
    SPLITS,
    STYLES,
    History,
    Split,
    all_histories,
    load,
)
from tests.benchmarks.memory.long_turns import long_turns

HISTORIES = sorted(FOLDER.glob("*.jsonl"))
ENTRIES = {"short": (300, 550), "long": (80, 250)}
DAYS = {"short": (40, 112), "long": (90, 190)}
ROLES = {"short": {"user", "agent", "tool"}, "long": {"user", "agent"}}
HEAD = '{"history": "small", "split": "tune", "about": "two entries"}'
FIRST = '{"id": "e1", "session": "s1", "speaker": "Mara", "role": "user", "at": "2026-03-02T09:14:00", "text": "hi"}'
SECOND = '{"id": "e2", "session": "s1", "speaker": "ls", "role": "tool", "at": "2026-03-02T09:15:00", "text": "a.txt"}'


@pytest.fixture(params=HISTORIES, ids=lambda path: path.stem)
def history(request: pytest.FixtureRequest) -> History:
    path: Path = request.param
    return load(path)


def test_a_history_covers_weeks_in_many_conversations(history: History) -> None:
    fewest, most = ENTRIES[history.style]
    shortest, longest = DAYS[history.style]
    assert fewest <= len(history.entries) <= most
    assert 20 <= len({entry.session for entry in history.entries}) <= 40
    assert shortest <= (history.entries[-1].at - history.entries[0].at).days <= longest
    assert {entry.role for entry in history.entries} >= ROLES[history.style]


def test_messages_are_as_long_as_the_style_says(history: History) -> None:
    lengths = [len(entry.text) for entry in history.entries]
    assert (median(lengths) >= 400) == (history.style == "long")


def test_a_conversation_is_not_interrupted_by_another(history: History) -> None:
    order = [entry.session for entry in history.entries]
    changes = sum(before != after for before, after in pairwise(order))
    assert changes + 1 == len(set(order))


def test_every_kind_of_question_is_asked_often_enough(history: History) -> None:
    kinds = Counter(question.kind for question in history.questions)
    assert sum(kinds.values()) >= 36
    asked = [kind for kind in QUESTION_KINDS if kind != "tool" or history.style == "short"]
    assert all(kinds[kind] >= 5 for kind in asked), kinds


def test_hardly_any_text_is_repeated(history: History) -> None:
    assert max(Counter(entry.text for entry in history.entries).values()) <= 3
    assert max(Counter(question.text for question in history.questions).values()) == 1


def test_half_of_the_histories_are_kept_for_judging() -> None:
    histories = [load(path) for path in HISTORIES]
    assert len(histories) >= 12
    assert sum(len(history.questions) for history in histories) >= 400
    for style in STYLES:
        splits = [history.split for history in histories if history.style == style]
        assert Counter(splits)["test"] * 2 == len(splits), style


@pytest.mark.parametrize("split", SPLITS)
def test_long_turns_are_the_same_each_time_and_keep_what_answers(split: Split) -> None:
    histories = all_histories()
    joined = long_turns(histories, split)
    assert joined == long_turns(histories, split)
    joined_texts = {entry.id: entry.text for entry in joined.entries}
    short = [history for history in histories if history.style == "short"]
    texts = {(history.name, entry.id): entry.text for history in short for entry in history.entries}
    before = [(history.name, old) for history in short if history.split == split for old in history.questions]
    for (name, old), new in zip(before, joined.questions, strict=True):
        answers = [texts[name, gold] for gold in old.gold]
        assert all(any(answer in joined_texts[gold] for gold in new.gold) for answer in answers)
    assert all(len(entry.text.split()) >= 120 for entry in joined.entries if entry.role == "agent")


def test_a_file_stays_readable_in_a_diff() -> None:
    assert all(path.stat().st_size < 400_000 for path in HISTORIES)


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ([], "empty"),
        ([HEAD, '{"id": "e1"}'], "line 2"),
        ([HEAD, FIRST, FIRST], "used twice"),
        ([HEAD, SECOND, FIRST], "e1 is not later than e2"),
        ([HEAD, FIRST, '{"question": "q1", "kind": "fact", "text": "Who?", "gold": ["e9"]}'], "q1 names e9"),
        ([HEAD, FIRST, '{"question": "q1", "kind": "none", "text": "Who?", "gold": ["e1"]}'], "kind none"),
        ([HEAD, FIRST, '{"question": "q1", "kind": "tool", "text": "Which?", "gold": ["e1"]}'], "no output of a tool"),
        ([HEAD, FIRST, '{"question": "q1", "kind": "places", "text": "Where?", "gold": ["e1"]}'], "two to four"),
    ],
)
def test_a_history_that_contradicts_itself_is_refused(tmp_path: Path, lines: list[str], fault: str) -> None:
    path = tmp_path / "small.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(ValueError, match=fault):
        load(path)


def test_entries_and_questions_are_read(tmp_path: Path) -> None:
    path = tmp_path / "small.jsonl"
    question = '{"question": "q1", "kind": "tool", "text": "Which file is there?", "gold": ["e2"]}'
    path.write_text("\n".join([HEAD, FIRST, SECOND, question]), encoding="utf-8")
    history = load(path)
    assert [entry.speaker for entry in history.entries] == ["Mara", "ls"]
    assert history.questions[0].gold == ("e2",)
