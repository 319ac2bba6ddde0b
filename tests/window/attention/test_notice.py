"""The words of notices, and which buttons they may have."""

import msgspec
import pytest

from app.protocol.asks import Approval, Ask
from app.window.attention.notice import Button, of_ask, of_ended, of_many
from tests.support.asks import APPROVAL, LIMIT, QUESTION, UNKNOWN
from tests.support.news import ended

PLAIN = Approval(
    tool="shell",
    call_id="call_1",
    text="Run a command",
    rule="it runs a program",
    risk="medium",
    command="python -m pytest -q",
    working_dir="/home/anna/project",
    reads=("/home/anna/project",),
)
OPEN_ALONE = (Button("open", "Open"),)


def approval(**changes: object) -> Ask:
    return msgspec.structs.replace(APPROVAL, approval=msgspec.structs.replace(PLAIN, **changes))


def test_an_approval_that_is_shown_whole_can_be_settled_from_its_notice() -> None:
    notice = of_ask(approval(writes=("/home/anna/project/build",)), "Run the tests")
    assert notice.title == "Approval needed: Run the tests"
    assert notice.body == "python -m pytest -q\nIn: /home/anna/project\nWrites: /home/anna/project/build"
    assert [button.label for button in notice.buttons] == ["Allow once", "Deny", "Open"]
    assert notice.stays


@pytest.mark.parametrize(
    "changes",
    [
        {"command": "x" * 500},
        {"command": "a\n" * 20},
        {"preview": "+select 1;"},
        {"risk": "high"},
        {"command": "curl -H 'Authorization: Bearer abcdefghijklmnop' https://example.org"},
        {"writes": tuple(f"/home/anna/project/folder_{number}" for number in range(20))},
    ],
)
def test_nobody_allows_what_they_did_not_see(changes: dict[str, object]) -> None:
    notice = of_ask(approval(**changes), "Run the tests")
    assert notice.buttons == OPEN_ALONE
    assert len(notice.body) < 260
    assert "abcdefghijklmnop" not in notice.body


def test_what_hides_in_a_command_is_written_out() -> None:
    assert "\\u202e" in of_ask(approval(command="echo \u202eabc"), "").body


def test_a_question_has_its_choices_as_buttons_only_if_all_of_them_fit() -> None:
    few = msgspec.structs.replace(QUESTION, choices=("Blue", "Green"))
    assert [button.label for button in of_ask(few, "Paint").buttons] == ["Blue", "Green", "Reply"]
    many = msgspec.structs.replace(QUESTION, choices=("a", "b", "c", "d"))
    assert [button.label for button in of_ask(many, "Paint").buttons] == ["Reply"]
    assert [button.label for button in of_ask(QUESTION, "Paint").buttons] == ["Reply"]


def test_a_limit_can_be_raised_or_kept() -> None:
    notice = of_ask(UNKNOWN, "Deploy")
    assert (notice.title, notice.body.split("\n")) == (
        "Outcome unknown: Deploy",
        ["make deploy && ./announce.sh", UNKNOWN.text],
    )
    assert notice.buttons == OPEN_ALONE
    notice = of_ask(LIMIT, "Count")
    assert (notice.title, notice.body) == ("Limit reached: Count", LIMIT.text)
    assert [button.label for button in notice.buttons] == ["Go on", "Stop here", "Open"]


def test_an_end_says_how_it_ended_and_a_burst_says_how_many() -> None:
    done, failed = ended("task_1", "completed", summary="All green."), ended("task_2", "error", error="No network.")
    assert (of_ended(done, "Test").title, of_ended(done, "Test").body) == ("Done: Test", "All green.")
    assert (of_ended(failed, "Test").title, of_ended(failed, "Test").body) == ("Failed: Test", "No network.")
    many = of_many((done, failed))
    assert (many.title, many.body) == ("2 tasks have ended", "1 task of them failed.")


def test_an_end_without_being_done_is_told_as_one() -> None:
    silent = msgspec.structs.replace(ended("task_1"), completion="undeclared")
    assert of_ended(silent, "Test").title == "Ended without saying that it is done: Test"
    refused = msgspec.structs.replace(ended("task_2"), completion="refused", refused_calls=3)
    assert of_ended(refused, "Test").title == "Ended, nothing it wanted to do was allowed: Test"
    many = of_many((silent, refused, ended("task_3", "error")))
    assert many.body == "1 task of them failed. 2 tasks of them ended without being done."
