"""Search over titles: hits in the order of change, kept current."""

from datetime import timedelta

import msgspec
import pytest

from errand.engine.storage.database import Database
from errand.engine.storage.records import conversations
from errand.engine.storage.sql.statements import Write
from errand.engine.storage.sql.tables import conversations as conversations_table
from errand.protocol.conversations import Conversation
from tests.support.records import NOW, conversation


def titled(number: int, title: str) -> Conversation:
    at = NOW + timedelta(seconds=number)
    return msgspec.structs.replace(conversation(f"conv_{number}-x"), title=title, updated_at=at)


TITLES = (
    titled(1, "Mend the tests in shop/"),
    titled(2, "Ein Café in Zürich"),
    titled(3, "The shop's tests are slow"),
    titled(4, "A note for Anna"),
)


async def put(database: Database, *changed: Conversation) -> None:
    database.journal.put(*(conversations.save(record) for record in changed))
    await database.journal.flush()


async def found(database: Database, text: str) -> list[str]:
    return [hit.title for hit in await database.titles.find(text)]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("tests", [3, 1]),
        ("SHOP tests", [3, 1]),
        ("slow sh", [3]),
        ("s", [3, 1]),
        ("cafe zur", [2]),
        ('"tests in"', [1]),
        ('"in tests"', []),
        ("conv", []),
        ("tests nothing", []),
        ("", []),
        ("*", []),
        ('") OR ("', []),
        ("title:note", []),
    ],
)
async def test_titles_match_words_in_any_order_with_an_incomplete_last_word(
    database: Database, text: str, numbers: list[int]
) -> None:
    await put(database, *TITLES)
    assert await found(database, text) == [TITLES[number - 1].title for number in numbers]


async def test_title_hits_are_newest_first_and_limited(database: Database) -> None:
    await put(database, *TITLES)
    await put(database, msgspec.structs.replace(TITLES[0], updated_at=NOW + timedelta(days=1)))
    assert await found(database, "tests") == [TITLES[0].title, TITLES[2].title]
    assert [hit.title for hit in await database.titles.find("tests", 1)] == [TITLES[0].title]


async def test_renamed_title_is_found_and_old_or_deleted_ones_are_not(database: Database) -> None:
    await put(database, *TITLES)
    await put(database, msgspec.structs.replace(TITLES[0], title="Something else"))
    assert await found(database, "mend") == []
    assert await found(database, "else") == ["Something else"]
    gone = conversations_table.delete().where(conversations_table.c.id == TITLES[2].id)
    database.journal.put(Write(gone, {}))
    await database.journal.flush()
    assert await found(database, "tests") == []


async def test_archived_conversations_are_found_too(database: Database) -> None:
    archived = msgspec.structs.replace(TITLES[3], archived=True)
    await put(database, archived)
    assert await database.titles.find("note") == (archived,)
