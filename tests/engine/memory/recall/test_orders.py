"""Bare orders are told from what tells something."""

import pytest

from errand.engine.memory.recall.orders import is_bare_order


@pytest.mark.parametrize(
    "text",
    [
        "delete the folder",
        "please run it again",
        "Ok, now push it to main.",
        "yes go",
        "can you fix the tests?",
        "lösch den Ordner",
        "Bitte räum das auf",
        "und jetzt schreib noch einen Test dafür",
    ],
)
def test_an_order_tells_nothing(text: str) -> None:
    assert is_bare_order(text)


@pytest.mark.parametrize(
    "text",
    [
        "the folder is on wren-03",
        "Before you delete the folder: it is the only copy.",
        "run it with just check. The clock is faked there.",
        "Der Code für das Gartentor ist 2580",
        "what do we do when postgres answers with 40001?",
        "",
    ],
)
def test_a_statement_or_a_question_is_no_order(text: str) -> None:
    assert not is_bare_order(text)
