"""Which notices there are to be, by what the engine tells and what the person has before them."""

import msgspec
import pytest

from app.protocol.events import AskUpdate, TaskUpdate
from app.window.attention.notice import Notice
from app.window.attention.notices import NoticeStore
from app.window.stores.stores import Stores
from tests.support.news import ask, at_work, ended
from tests.support.screen_of_person import Eyes
from tests.support.until import until


class Told:
    """The notices that are wanted now."""

    def __init__(self, stores: Stores) -> None:
        self.eyes = Eyes()
        self.store = NoticeStore(stores, self.eyes.conversation, self.eyes.on_us)
        self.notices: tuple[Notice, ...] = ()
        self.times = 0
        self.opened: list[str] = []
        self.store.wanted.connect(self._on_wanted)
        self.store.opened.connect(self.opened.append)

    @property
    def titles(self) -> list[str]:
        return [notice.title for notice in self.notices]

    def _on_wanted(self, wanted: tuple[Notice, ...]) -> None:
        self.notices = wanted
        self.times += 1


@pytest.fixture
def told(qapp: object, stores: Stores) -> Told:
    return Told(stores)


async def test_an_ask_and_an_end_elsewhere_are_told_and_no_stop_of_ones_own(stores: Stores, told: Told) -> None:
    stores.apply(AskUpdate(ask=ask("ask_1", "conv_1")))
    stores.apply(TaskUpdate(task=ended("task_2", "manual_stop", "conv_2")))
    stores.apply(TaskUpdate(task=ended("task_3", "completed", "conv_3")))
    await until(lambda: bool(told.notices))
    assert told.titles == ["Approval needed", "Done: The work of task_3"]


async def test_what_is_before_the_person_is_not_told(stores: Stores, told: Told) -> None:
    told.eyes.look_at("conv_1")
    stores.apply(AskUpdate(ask=ask("ask_1", "conv_1")))
    stores.apply(TaskUpdate(task=ended("task_1", conversation_id="conv_1")))
    stores.apply(AskUpdate(ask=ask("ask_2", "conv_2")))
    await until(lambda: bool(told.notices))
    assert [notice.key for notice in told.notices] == ["ask_2"]


async def test_what_is_looked_at_is_taken_back_and_told_no_second_time(stores: Stores, told: Told) -> None:
    stores.apply(AskUpdate(ask=ask("ask_1", "conv_1")))
    stores.apply(TaskUpdate(task=ended("task_2", conversation_id="conv_1")))
    await until(lambda: len(told.notices) == 2)
    told.eyes.look_at("conv_1")
    told.store.look_again()
    await until(lambda: told.notices == ())
    told.eyes.look_away()
    told.store.look_again()
    stores.apply(AskUpdate(ask=ask("ask_3", "conv_3")))
    await until(lambda: bool(told.notices))
    assert [notice.key for notice in told.notices] == ["ask_3"]


async def test_an_ask_that_is_settled_elsewhere_is_taken_back(stores: Stores, told: Told) -> None:
    waiting = ask()
    stores.apply(AskUpdate(ask=waiting))
    await until(lambda: bool(told.notices))
    stores.apply(AskUpdate(ask=msgspec.structs.replace(waiting, status="answered", answered_by="cli")))
    await until(lambda: told.notices == ())


async def test_a_conversation_that_works_again_takes_its_last_end_back(stores: Stores, told: Told) -> None:
    stores.apply(TaskUpdate(task=ended("task_1")))
    await until(lambda: bool(told.notices))
    stores.apply(TaskUpdate(task=at_work("task_2")))
    await until(lambda: told.notices == ())


async def test_a_burst_of_ends_is_one_notice_until_the_person_comes_back(stores: Stores, told: Told) -> None:
    for number in range(20):
        stores.apply(TaskUpdate(task=ended(f"task_{number}", conversation_id=f"conv_{number}")))
    await until(lambda: bool(told.notices))
    assert (told.titles, told.times) == (["20 tasks have ended"], 1)
    stores.apply(TaskUpdate(task=ended("task_20", conversation_id="conv_20")))
    await until(lambda: told.times == 2)
    assert told.titles == ["21 tasks have ended"]
    told.eyes.look_at("conv_other")
    told.store.look_again()
    await until(lambda: told.notices == ())


async def test_a_button_that_comes_too_late_opens_the_conversation(stores: Stores, told: Told) -> None:
    stores.apply(TaskUpdate(task=ended("task_1", conversation_id="conv_7")))
    await until(lambda: bool(told.notices))
    told.store.act("task_1", "allow")
    told.store.act("gone", "open")
    assert told.opened == ["conv_7"]
