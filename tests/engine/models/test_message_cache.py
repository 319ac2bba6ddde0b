"""Caches of values of messages: what a request that only grows keeps, and what other messages lose."""

import gc

from errand.engine.core.messages import AssistantMessage, ModelMessage, Text, user_text
from errand.engine.models.message_cache import BeginningCache, MessageCache

FIRST = user_text("go")


def reply(text: str) -> AssistantMessage:
    return AssistantMessage((Text(text),))


def test_two_ways_to_see_one_conversation_keep_a_value_each() -> None:
    cache: BeginningCache[str] = BeginningCache()
    as_written: tuple[ModelMessage, ...] = (FIRST, reply("one"))
    as_sent: tuple[ModelMessage, ...] = (FIRST, reply("ONE"))
    cache.put(as_written, "written")
    cache.put(as_sent, "sent")
    for step in range(3):
        for messages, value in ((as_written, "written"), (as_sent, "sent")):
            assert cache.find((*messages, reply("more"))) == (2 + step, value)
        as_written, as_sent = (*as_written, reply("next")), (*as_sent, reply("NEXT"))
        cache.put(as_written, "written", covered=2 + step)
        cache.put(as_sent, "sent", covered=2 + step)


def test_a_third_way_replaces_the_oldest_value() -> None:
    cache: BeginningCache[int] = BeginningCache()
    ways = [(FIRST, reply(str(number))) for number in range(3)]
    for number, messages in enumerate(ways):
        cache.put(messages, number)
    assert [cache.find(messages) for messages in ways] == [None, (2, 1), (2, 2)]


def test_the_newest_of_two_values_of_the_same_messages_counts() -> None:
    cache: BeginningCache[str] = BeginningCache()
    messages = (FIRST, reply("one"))
    cache.put(messages, "older")
    cache.put(messages, "newer")
    assert cache.find(messages) == (2, "newer")


def test_values_go_with_their_messages() -> None:
    first = user_text("once")
    beginnings: BeginningCache[str] = BeginningCache()
    values: MessageCache[str] = MessageCache()
    beginnings.put((first,), "kept")
    assert values.get_each((first, FIRST), lambda _: "made") == ["made", "made"]
    assert values.get_each((first, FIRST), lambda _: "made again") == ["made", "made"]
    del first
    gc.collect()
    other = user_text("twice")
    assert beginnings.find((other,)) is None
    assert values.get_each((other,), lambda _: "new") == ["new"]
