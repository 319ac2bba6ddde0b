"""How a typed line is read as an answer."""

import msgspec
import pytest

from app.cli.asks import Problem, ask_lines, hint, outcome, read_reply, short_hint
from app.cli.style import Style
from app.protocol.asks import AskAnswerParams, ReachedLimit
from tests.support.asks import UNKNOWN
from tests.support.terminal_events import approval, limit, question


@pytest.mark.parametrize(
    ("line", "reply"),
    [
        ("a", AskAnswerParams(ask_id="ask_1", allow=True)),
        (" C ", AskAnswerParams(ask_id="ask_1", allow=True, remember="conversation")),
        ("w", AskAnswerParams(ask_id="ask_1", allow=True, remember="workspace")),
        ("d", AskAnswerParams(ask_id="ask_1", allow=False)),
        ("r use the test folder", AskAnswerParams(ask_id="ask_1", allow=False, text="use the test folder")),
    ],
)
def test_an_approval_is_settled_by_one_letter(line: str, reply: AskAnswerParams) -> None:
    assert read_reply(approval(), line) == reply


@pytest.mark.parametrize("line", ["", "y", "yes", "allow", "a b", "r", "q"])
def test_anything_else_decides_nothing_about_an_approval(line: str) -> None:
    assert isinstance(read_reply(approval(), line), Problem)


def test_what_cannot_be_remembered_is_not_offered_and_not_taken() -> None:
    once_only = approval(remembered=None)
    assert "conversation" not in hint(once_only)
    assert isinstance(read_reply(once_only, "c"), Problem)


def test_a_number_picks_a_choice_and_other_text_is_an_answer_of_its_own() -> None:
    ask = question("formal", "friendly")
    assert read_reply(ask, "2") == AskAnswerParams(ask_id="ask_1", text="friendly")
    assert read_reply(ask, "3") == AskAnswerParams(ask_id="ask_1", text="3")
    assert read_reply(ask, " warm ") == AskAnswerParams(ask_id="ask_1", text="warm")


def test_an_empty_line_answers_no_question() -> None:
    assert isinstance(read_reply(question(), "  "), Problem)


def test_a_limit_takes_a_number_that_is_more_than_was_used() -> None:
    reached = ReachedLimit(kind="tokens", used=1200, limit=1000, adds=1000)
    ask = msgspec.structs.replace(limit(), limit=reached)
    assert read_reply(ask, "50,000") == AskAnswerParams(ask_id="ask_1", allow=True, amount=50_000)
    assert hint(ask).endswith("a number of your own: the new limit in tokens")
    assert (short_hint(ask), short_hint(limit())) == ("go on? y n or a number > ", "go on? y n > ")
    for wrong in ("1200", "-5", "1300.5", "inf", "nan", "1e400", "many"):
        problem = read_reply(ask, wrong)
        assert isinstance(problem, Problem) and problem.text.endswith("it must be more than 1,200 tokens")
    raised = msgspec.structs.replace(ask, status="answered", allowed=True, amount=50_000, answered_by="me")
    assert outcome(raised) == "raised to 50,000 tokens by me"


def test_a_limit_takes_yes_or_no() -> None:
    assert read_reply(limit(), "y") == AskAnswerParams(ask_id="ask_1", allow=True)
    assert read_reply(limit(), "no") == AskAnswerParams(ask_id="ask_1", allow=False)
    assert isinstance(read_reply(limit(), "maybe"), Problem)


def test_an_unknown_outcome_takes_one_of_its_numbers_and_nothing_else() -> None:
    assert hint(UNKNOWN) == "1 run it again · 2 skip it · 3 stop the task"
    assert read_reply(UNKNOWN, "2") == AskAnswerParams(ask_id="ask_u", text="Skip it")
    assert all(isinstance(read_reply(UNKNOWN, line), Problem) for line in ("", "4", "y", "skip"))


def test_an_unknown_outcome_shows_the_exact_command() -> None:
    lines = ask_lines(UNKNOWN, Style(colour=False, unicode=True))
    assert lines[1] == "  ran    make deploy && ./announce.sh"
