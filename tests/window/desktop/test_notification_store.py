"""The texts of notifications, and the buttons they may have."""

import msgspec
import pytest

from errand.protocol.asks import Approval, Ask, ReachedLimit
from errand.protocol.events import AskUpdate, TaskUpdate
from errand.protocol.tasks.task import replace_fields
from errand.window.stores.notifications import (
    Notification,
    NotificationButton,
    NotificationStore,
    ask_notification,
    ended_notification,
    grouped_notification,
)
from errand.window.stores.stores import Stores
from tests.support.protocol_events import ask, at_work, ended
from tests.support.rows import APPROVAL, LIMIT, QUESTION, UNKNOWN
from tests.support.window import Eyes, until

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
OPEN_ALONE = (NotificationButton("open", "Open"),)


def approval(**changes: object) -> Ask:
    return msgspec.structs.replace(APPROVAL, approval=msgspec.structs.replace(PLAIN, **changes))


def test_an_approval_that_is_fully_shown_can_be_answered_from_its_notification() -> None:
    notice = ask_notification(approval(writes=("/home/anna/project/build",)), "Run the tests")
    assert notice.title == "Approval needed: Run the tests"
    assert notice.body == "python -m pytest -q\nFolder: /home/anna/project\nWrites: /home/anna/project/build"
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
def test_an_approval_that_is_not_fully_shown_has_no_allow_button(changes: dict[str, object]) -> None:
    notice = ask_notification(approval(**changes), "Run the tests")
    assert notice.buttons == OPEN_ALONE
    assert len(notice.body) < 260
    assert "abcdefghijklmnop" not in notice.body


def test_hidden_characters_of_a_command_are_escaped_in_its_notification() -> None:
    assert "\\u202e" in ask_notification(approval(command="echo \u202eabc"), "").body


def test_a_question_offers_its_choices_as_buttons_only_if_all_fit() -> None:
    few = msgspec.structs.replace(QUESTION, choices=("Blue", "Green"))
    assert [button.label for button in ask_notification(few, "Paint").buttons] == ["Blue", "Green", "Reply"]
    many = msgspec.structs.replace(QUESTION, choices=("a", "b", "c", "d"))
    assert [button.label for button in ask_notification(many, "Paint").buttons] == ["Reply"]
    assert [button.label for button in ask_notification(QUESTION, "Paint").buttons] == ["Reply"]


def test_a_limit_has_answer_buttons_in_its_notification_and_an_unknown_outcome_has_none() -> None:
    notice = ask_notification(UNKNOWN, "Deploy")
    assert (notice.title, notice.body.split("\n")) == (
        "Outcome unknown: Deploy",
        ["make deploy && ./announce.sh", UNKNOWN.text],
    )
    assert notice.buttons == OPEN_ALONE
    notice = ask_notification(LIMIT, "Count")
    assert (notice.title, notice.body) == ("Limit reached: Count", LIMIT.text)
    assert [button.label for button in notice.buttons] == ["Continue", "Stop", "Open"]
    counted = msgspec.structs.replace(LIMIT, limit=ReachedLimit(kind="turns", used=50, limit=50, adds=50))
    assert ask_notification(counted, "Count").buttons[0].label == "Continue: 50 more turns"


def test_a_notification_says_how_a_task_ended_and_a_grouped_one_how_many() -> None:
    done, failed = ended("task_1", "completed", summary="All green."), ended("task_2", "error", error="No network.")
    assert (ended_notification(done, "Test").title, ended_notification(done, "Test").body) == (
        "Done: Test",
        "All green.",
    )
    assert (ended_notification(failed, "Test").title, ended_notification(failed, "Test").body) == (
        "Failed: Test",
        "No network.",
    )
    many = grouped_notification((done, failed))
    assert (many.title, many.body) == ("2 tasks have ended", "1 of these tasks failed.")


def test_the_end_of_an_unfinished_task_is_notified_as_unfinished() -> None:
    silent = replace_fields(ended("task_1"), completion="undeclared")
    assert ended_notification(silent, "Test").title == "Ended without confirming that it's done: Test"
    refused = replace_fields(ended("task_2"), completion="refused", refused_calls=3)
    assert ended_notification(refused, "Test").title == "Ended: nothing it tried was allowed: Test"
    many = grouped_notification((silent, refused, ended("task_3", "error")))
    assert many.body == "1 of these tasks failed. 2 of these tasks ended without being done."


class Told:
    """The notifications that are currently wanted."""

    def __init__(self, stores: Stores) -> None:
        self.eyes = Eyes()
        self.store = NotificationStore(stores, self.eyes.conversation, self.eyes.on_us)
        self.notices: tuple[Notification, ...] = ()
        self.times = 0
        self.opened: list[str] = []
        self.store.notices_changed.connect(self._on_wanted)
        self.store.opened.connect(self.opened.append)

    @property
    def titles(self) -> list[str]:
        return [notice.title for notice in self.notices]

    def _on_wanted(self, notifications: tuple[Notification, ...]) -> None:
        self.notices = notifications
        self.times += 1


@pytest.fixture
def recorder(qapp: object, stores: Stores) -> Told:
    return Told(stores)


async def test_asks_and_ends_in_other_conversations_are_notified_but_not_manual_stops(
    stores: Stores, recorder: Told
) -> None:
    stores.apply(AskUpdate(ask=ask("ask_1", "conv_1")))
    stores.apply(TaskUpdate(task=ended("task_2", "manual_stop", "conv_2")))
    stores.apply(TaskUpdate(task=ended("task_3", "completed", "conv_3")))
    await until(lambda: bool(recorder.notices))
    assert recorder.titles == ["Approval needed", "Done: The work of task_3"]


async def test_nothing_is_notified_about_the_active_conversation(stores: Stores, recorder: Told) -> None:
    recorder.eyes.look_at("conv_1")
    stores.apply(AskUpdate(ask=ask("ask_1", "conv_1")))
    stores.apply(TaskUpdate(task=ended("task_1", conversation_id="conv_1")))
    stores.apply(AskUpdate(ask=ask("ask_2", "conv_2")))
    await until(lambda: bool(recorder.notices))
    assert [notice.key for notice in recorder.notices] == ["ask_2"]


async def test_viewing_a_conversation_withdraws_its_notifications_for_good(stores: Stores, recorder: Told) -> None:
    stores.apply(AskUpdate(ask=ask("ask_1", "conv_1")))
    stores.apply(TaskUpdate(task=ended("task_2", conversation_id="conv_1")))
    await until(lambda: len(recorder.notices) == 2)
    recorder.eyes.look_at("conv_1")
    recorder.store.on_activation_changed()
    await until(lambda: recorder.notices == ())
    recorder.eyes.look_away()
    recorder.store.on_activation_changed()
    stores.apply(AskUpdate(ask=ask("ask_3", "conv_3")))
    await until(lambda: bool(recorder.notices))
    assert [notice.key for notice in recorder.notices] == ["ask_3"]


async def test_the_notification_of_an_ask_answered_elsewhere_is_withdrawn(stores: Stores, recorder: Told) -> None:
    waiting = ask()
    stores.apply(AskUpdate(ask=waiting))
    await until(lambda: bool(recorder.notices))
    stores.apply(AskUpdate(ask=msgspec.structs.replace(waiting, status="answered", answered_by="cli")))
    await until(lambda: recorder.notices == ())


async def test_a_new_task_withdraws_the_notification_of_the_last_end(stores: Stores, recorder: Told) -> None:
    stores.apply(TaskUpdate(task=ended("task_1")))
    await until(lambda: bool(recorder.notices))
    stores.apply(TaskUpdate(task=at_work("task_2")))
    await until(lambda: recorder.notices == ())


async def test_many_ends_share_one_notification_until_the_window_is_active(stores: Stores, recorder: Told) -> None:
    for number in range(20):
        stores.apply(TaskUpdate(task=ended(f"task_{number}", conversation_id=f"conv_{number}")))
    await until(lambda: bool(recorder.notices))
    assert (recorder.titles, recorder.times) == (["20 tasks have ended"], 1)
    stores.apply(TaskUpdate(task=ended("task_20", conversation_id="conv_20")))
    await until(lambda: recorder.times == 2)
    assert recorder.titles == ["21 tasks have ended"]
    recorder.eyes.look_at("conv_other")
    recorder.store.on_activation_changed()
    await until(lambda: recorder.notices == ())


async def test_many_asks_share_one_notification_until_all_are_settled(stores: Stores, recorder: Told) -> None:
    asks = [ask(f"ask_{number}", f"conv_{number}") for number in range(5)]
    for waiting in asks:
        stores.apply(AskUpdate(ask=waiting))
    await until(lambda: bool(recorder.notices))
    assert (recorder.titles, recorder.times) == (["5 tasks wait for you"], 1)
    for waiting in asks[1:4]:
        stores.apply(AskUpdate(ask=msgspec.structs.replace(waiting, status="answered", answered_by="cli")))
    await until(lambda: recorder.titles == ["2 tasks wait for you"])
    recorder.store.handle_click("asks", "open")
    assert recorder.opened == ["conv_0"]
    for waiting in (asks[0], asks[4]):
        stores.apply(AskUpdate(ask=msgspec.structs.replace(waiting, status="answered", answered_by="cli")))
    await until(lambda: recorder.notices == ())
    stores.apply(AskUpdate(ask=ask("ask_9", "conv_9")))
    await until(lambda: [notice.key for notice in recorder.notices] == ["ask_9"])


async def test_a_button_of_an_answered_ask_opens_the_conversation(stores: Stores, recorder: Told) -> None:
    stores.apply(TaskUpdate(task=ended("task_1", conversation_id="conv_7")))
    await until(lambda: bool(recorder.notices))
    recorder.store.handle_click("task_1", "allow")
    recorder.store.handle_click("gone", "open")
    assert recorder.opened == ["conv_7"]
