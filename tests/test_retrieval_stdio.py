"""The search of memory over JSON lines."""

import json
import subprocess
import sys
from typing import cast

import pytest

from tests.support.limits import WAIT_LIMIT_S

TURNS = (
    {
        "id": "a",
        "session": "1",
        "speaker": "Mara",
        "role": "user",
        "date": "1:47 pm on 18 May, 2023",
        "text": "A kayak!",
    },
    {
        "id": "b",
        "session": "1",
        "speaker": "Bo",
        "role": "assistant",
        "ts": 1700000000,
        "text": "Where do you keep it?",
    },
    {"id": "c", "session": "2", "speaker": "Mara", "role": "user", "ts": "2023-05-19T08:00:00", "text": "Rain."},
)


def answers(*lines: object) -> list[dict[str, object]]:
    sent = "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.retrieval_stdio"],
        input=sent,
        capture_output=True,
        text=True,
        timeout=WAIT_LIMIT_S,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_turns_are_indexed_found_and_forgotten_with_the_store() -> None:
    search = {"op": "search", "query": "Who has a kayak?", "k": 1}
    index = {"op": "index", "turns": TURNS}
    reset = {"op": "reset"}
    assert answers(reset, index, search, reset, search) == [
        {"ok": True},
        {"ok": True},
        {"ids": ["a"]},
        {"ok": True},
        {"ids": []},
    ]


IDS: tuple[object, ...] = ("7", 7, 7.5, -1, True, None, ["s1", 3], {"session": 4, "turn": "x"}, "ü\u2028", 2**80)


def test_ids_of_any_type_come_back_as_they_are() -> None:
    turns = [{"id": key, "session": key, "text": f"kayak number {number}"} for number, key in enumerate(IDS)]
    _, answer = answers({"op": "index", "turns": turns}, {"op": "search", "query": "kayak", "k": 20})
    assert sorted(map(repr, cast("list[object]", answer["ids"]))) == sorted(map(repr, IDS))


@pytest.mark.parametrize(
    "date",
    [
        "2023-05-26",
        "2023-05-26T23:40:00",
        "2023-05-26T23:40:00+09:00",
        "2023-05-26 23:40:00.123Z",
        "2023/05/26 (Fri) 23:40",
        "1:47 pm on 26 May, 2023",
        "Fri, May 26th 2023",
        "26.05.2023",
        "5/26/2023, 11:40 PM",
    ],
)
def test_dates_are_read_as_people_write_them(date: str) -> None:
    turns = [
        {"id": "far", "date": "2023-05-12", "text": "We had a kayak in the far bay."},
        {"id": "on", "date": date, "text": "We had a kayak near the mill."},
        {"id": "none", "date": None, "text": "We had a kayak for nothing at all."},
        {"id": "odd", "date": "soon", "ts": None, "text": "We had a kayak, an odd red one."},
    ]
    search = {"op": "search", "query": "Where was the kayak last Friday?", "k": 4, "date": "2023/05/30 (Tue) 09:10"}
    _, answer = answers({"op": "index", "turns": turns}, search)
    ids = cast("list[str]", answer["ids"])
    assert ids[0] == "on" and len(ids) == 4


def test_a_line_that_is_no_request_is_answered_and_the_next_one_too() -> None:
    first, second, third = answers("{", {"op": "dance"}, {"op": "reset"})
    assert "error" in first and "error" in second and third == {"ok": True}


def test_half_a_surrogate_pair_does_not_lose_the_turns_beside_it() -> None:
    texts = ("kayak \ud83d", "kayak \U0001f6f6", "kayak \\ud83d")
    turns = [{"id": number, "text": text} for number, text in enumerate(texts)]
    first, second = answers({"op": "index", "turns": turns}, {"op": "search", "query": "kayak \ude00", "k": 5})
    assert first == {"ok": True} and sorted(cast("list[int]", second["ids"])) == [0, 1, 2]
