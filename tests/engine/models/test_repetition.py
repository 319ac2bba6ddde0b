"""Replies that repeat themselves without end, and replies that only look as if they did."""

import base64
import random
from collections.abc import Iterator
from itertools import count, islice

import pytest

from errand.engine.models.reply.repetition import RepetitionWatch

LIMIT = 4_000
_PARAGRAPH = "The sky was grey. She went down to the harbour, and nobody was there. " * 4


def pieces(text: str, seed: int = 1) -> Iterator[str]:
    """The text in deltas of one to forty characters."""
    sizes, position = random.Random(seed), 0
    while position < len(text):
        size = sizes.randint(1, 40)
        yield text[position : position + size]
        position += size


def length_when_found(text: str) -> int | None:
    watch, length = RepetitionWatch(LIMIT), 0
    for piece in pieces(text):
        length += len(piece)
        if watch.repeats(piece):
            return length
    return None


@pytest.mark.parametrize(
    "piece", ["a", "\n", "the ", "I will read the file now.\n", "- one\n- two\n- three\n", _PARAGRAPH, "-" * 80 + "\n"]
)
def test_a_piece_that_comes_again_and_again_is_found(piece: str) -> None:
    length = length_when_found("An answer that begins well.\n\n" + piece * (40_000 // len(piece)))
    assert length is not None
    assert length <= max(LIMIT, 10 * len(piece)) + 1_000


def _numbers() -> str:
    return "".join(f"| {number} | {number % 7} | {number * number} |\n" for number in range(3_000))


def _drawing() -> str:
    return "".join("#" * (60 - abs(30 - row)) + "\n" for row in range(60)) + ("#" + " " * 58 + "#\n") * 40


def _code() -> str:
    return "".join(f"    assert add({number}, 1) == {number + 1}\n    assert True\n" for number in range(2_000))


@pytest.mark.parametrize(
    "text",
    [
        _numbers(),
        _drawing(),
        _code(),
        base64.b64encode(random.Random(2).randbytes(40_000)).decode(),
        "0, " * 1_000,
        "pass\n" * 500,
        ("-" * 80 + "\n") * 40,
        "\n".join(f"{number}. The same sentence, under another number." for number in range(2_000)),
        "".join(map(str, islice(count(), 20_000))),
        _PARAGRAPH * 9,
        "",
    ],
)
def test_tables_code_drawings_and_data_are_not_taken_for_it(text: str) -> None:
    assert length_when_found(text) is None


def test_a_piece_with_the_same_end_twice_is_found() -> None:
    piece = "".join(f"{number} {'=' * 70}\n" for number in range(4))
    assert length_when_found(piece * 100) is not None


def test_text_in_one_delta_is_found() -> None:
    assert RepetitionWatch(LIMIT).repeats("again " * 10_000)
