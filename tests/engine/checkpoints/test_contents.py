"""The store of contents: real files, threads, and damage."""

import os
import sqlite3
import stat
import zlib
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from errand.engine.checkpoints.contents import ContentStore, id_of
from errand.engine.checkpoints.notes import note_of, noted_changes
from tests.engine.checkpoints.parts import work_in

HOUR = 3600.0


@pytest.fixture
def store(tmp_path: Path) -> Generator[ContentStore]:
    content_store = ContentStore(tmp_path / "replaced")
    yield content_store
    content_store.close()


def aged(folder: Path, hours: float) -> None:
    """Make all contents older."""
    with closing(sqlite3.connect(folder / "replaced/contents.db")) as connection:
        connection.execute("UPDATE contents SET at = at - ?", (hours * HOUR,))
        connection.commit()


@pytest.mark.parametrize("content", [b"", b"x", b"line\n" * 10_000, bytes(range(256)) * 300, os.urandom(100_000)])
def test_a_content_comes_back_exactly_also_from_another_engine(
    store: ContentStore, tmp_path: Path, content: bytes
) -> None:
    (content_id,) = store.put(content)
    assert (content_id, store.get(content_id), store.has(content_id)) == (id_of(content), content, True)
    store.close()
    with closing(ContentStore(tmp_path / "replaced")) as again:
        assert again.get(content_id) == content


def test_looking_makes_no_file(store: ContentStore, tmp_path: Path) -> None:
    assert (store.get("a"), store.has("a"), store.notes()) == (None, False, {})
    store.delete(["a"])
    store.prune(frozenset())
    assert not (tmp_path / "replaced").exists()


def test_the_file_is_for_the_owner_only(store: ContentStore, tmp_path: Path) -> None:
    store.put(b"secret")
    for file in (tmp_path / "replaced").iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_notes_are_kept_with_their_contents_until_they_are_dropped(store: ContentStore) -> None:
    store.put(b"old", b"new", notes={"b": b"second"})
    store.put(notes={"a": b"first", "c": b"third"}, done=["b"])
    assert list(store.notes().items()) == [("a", b"first"), ("c", b"third")]
    store.drop_notes(["a", "c"])
    assert store.notes() == {}
    assert store.get(id_of(b"old")) == b"old"


def test_pruning_leaves_what_is_used_or_young(store: ContentStore, tmp_path: Path) -> None:
    used, unused = store.put(b"used", b"unused")
    store.prune(frozenset())
    assert store.has(unused)
    aged(tmp_path, 2)
    (young,) = store.put(b"young")
    store.prune(frozenset({used}))
    assert [store.has(content_id) for content_id in (used, unused, young)] == [True, False, True]


def test_a_content_that_is_stored_again_is_young_again(store: ContentStore, tmp_path: Path) -> None:
    (content,) = store.put(b"x")
    aged(tmp_path, 2)
    store.put(b"x")
    store.prune(frozenset())
    assert store.has(content)


def test_pruning_deletes_the_oldest_until_the_rest_is_small_enough(store: ContentStore, tmp_path: Path) -> None:
    (oldest,) = store.put(os.urandom(1_000))
    aged(tmp_path, 1)
    (older,) = store.put(os.urandom(1_000))
    aged(tmp_path, 1)
    (newest,) = store.put(os.urandom(1_000))
    store.prune(frozenset({oldest, older, newest}), most_bytes=2_500)
    assert [store.has(content_id) for content_id in (oldest, older, newest)] == [False, True, True]


def test_of_a_deleted_content_nothing_is_left_and_its_space_is_given_back(store: ContentStore, tmp_path: Path) -> None:
    secret = os.urandom(400).hex().encode()
    large = [os.urandom(1_000_000) for _ in range(3)]
    ids = store.put(secret, *large)
    (stays,) = store.put(b"stays")
    store.delete(ids)
    files = list((tmp_path / "replaced").iterdir())
    packed = zlib.compress(secret, 1)[20:60]
    assert all(packed not in file.read_bytes() and secret not in file.read_bytes() for file in files)
    assert sum(file.stat().st_size for file in files) < 200_000
    assert store.get(stays) == b"stays"


def test_threads_store_at_the_same_time(store: ContentStore) -> None:
    contents = [f"content {number}\n".encode() * 200 for number in range(40)]

    def put(content: bytes) -> str:
        return store.put(content, b"shared", notes={id_of(content): b"note"})[0]

    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(put, contents))
    assert [store.get(content_id) for content_id in ids] == contents
    assert store.notes().keys() == set(ids)


def test_damage_is_said_in_words_and_read_as_nothing(tmp_path: Path) -> None:
    file = tmp_path / "replaced/contents.db"
    file.parent.mkdir()
    file.write_bytes(b"no database" * 1_000)
    store = ContentStore(tmp_path / "replaced")
    assert (store.get("a"), store.has("a")) == (None, False)
    with pytest.raises(OSError, match=r"cannot be kept .file is not a database.; if it stays so, delete .*contents"):
        store.put(b"x")


def test_a_content_that_was_altered_is_not_given_back(store: ContentStore, tmp_path: Path) -> None:
    plain, packed = store.put(b"x", b"y" * 1_000)
    store.close()
    with closing(sqlite3.connect(tmp_path / "replaced/contents.db")) as connection:
        connection.execute("UPDATE contents SET data = x'7078ff'")
        connection.commit()
    assert (store.get(plain), store.get(packed)) == (None, None)


async def test_contents_of_old_changes_are_deleted_unless_a_running_command_still_needs_them(tmp_path: Path) -> None:
    async with work_in(tmp_path) as work:
        contents, file = work.services.checkpoints.contents, work.put("a", "old\n")
        await work.write(1, "a", "new\n")
        work.put("b", "named\n")
        checkpoints = work.tool_checkpoints()
        await checkpoints.prepare()
        saved = await checkpoints.command_begins("call", "rm b; sleep 1", work.folder)
        long_ago = datetime.now(UTC) - timedelta(days=40)
        for change in noted_changes(contents):
            contents.put(notes={change.id: note_of(msgspec.structs.replace(change, at=long_ago))})
        aged(tmp_path / "data", 2)
        await work.services.checkpoints.prune(30)
        assert contents.has(id_of(b"old\n"))  # its change is young
        assert noted_changes(contents) == []  # what a command may change is the baseline
        aged(tmp_path / "data", 2)
        await work.services.checkpoints.prune(-1)
        assert [contents.has(id_of(text)) for text in (b"old\n", b"new\n", b"named\n")] == [False, True, True]
        assert (file.read_text(), saved is not None) == ("new\n", True)
