"""The search of memory over JSON lines."""

import json
import subprocess
import sys

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


def test_a_line_that_is_no_request_is_answered_and_the_next_one_too() -> None:
    first, second, third = answers("{", {"op": "dance"}, {"op": "reset"})
    assert "error" in first and "error" in second and third == {"ok": True}
