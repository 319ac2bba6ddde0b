"""Sessions of other programs that are on this machine: found, shown, taken in by choice."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec

from errand.protocol.data import DataImportResult, FoundSessions
from tests.support.command_line import Errand
from tests.support.stored_records import on_both

_REAL = Path(__file__).parents[2] / "engine" / "data" / "importers" / "files" / "real"
_AT = "2026-11-23T19:06:41.000Z"


def _message(number: int, role: str, text: str) -> bytes:
    parent = f"m{number - 1}" if number > 1 else None
    message = {"role": role, "content": [{"type": "text", "text": text}]}
    return _line({"type": "message", "id": f"m{number}", "parentId": parent, "timestamp": _AT, "message": message})


def _line(record: dict[str, object]) -> bytes:
    return msgspec.json.encode(record) + b"\n"


def _pi_session(folder: Path, name: str, *messages: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    head: dict[str, object] = {"type": "session", "version": 3, "id": name, "timestamp": _AT, "cwd": "/"}
    file = folder / f"{name}.jsonl"
    file.write_bytes(_line(head) + b"".join(messages))
    return file


def _found(out: str) -> list[FoundSessions]:
    return [msgspec.json.decode(line, type=FoundSessions) for line in out.splitlines()]


@on_both
async def test_sessions_are_found_taken_once_and_again_when_they_have_grown(own_errand: Errand, tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path)}
    folder = tmp_path / ".pi" / "agent" / "sessions" / "--work--"
    file = _pi_session(folder, "one", _message(1, "user", "hello"), _message(2, "assistant", "good day"))
    _pi_session(folder, "two", _message(1, "user", "another"), _message(2, "assistant", "yes"))
    _pi_session(folder, "nothing-said")
    before = await own_errand.run("import", variables=home)
    listed = await own_errand.run("import", "--json", variables=home)
    taken = await own_errand.run("import", "--yes", "--json", variables=home)
    after = await own_errand.run("import", variables=home)
    with file.open("ab") as grown:
        grown.write(_message(3, "user", "one thing more"))
    later = await own_errand.run("import", "--json", variables=home)
    again = await own_errand.run("import", "--yes", variables=home)

    (pi,) = _found(listed.out)
    assert (pi.program, pi.sessions, pi.new, pi.grown, pi.present) == ("pi", 2, 2, 0, 0)
    assert "2 sessions" in before.out and "2 new" in before.out and "--yes" in before.err
    assert msgspec.json.decode(taken.out, type=DataImportResult).conversations == 2
    assert "2 here already" in after.out and "already been imported" in after.err
    (pi,) = _found(later.out)
    assert (pi.new, pi.grown, pi.present) == (0, 1, 1)
    assert "1 conversation here got new messages" in again.out


async def test_sessions_of_goose_are_found_in_its_database_and_those_that_others_called_come_along(
    own_errand: Errand, tmp_path: Path
) -> None:
    home = {"HOME": str(tmp_path)}
    path = tmp_path / ".local" / "share" / "goose" / "sessions" / "sessions.db"
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as database:
        database.executescript((_REAL / "goose" / "sessions.sql").read_text())
        (goose,) = _found((await own_errand.run("import", "--json", variables=home)).out)
        taken = await own_errand.run("import", "--program", "goose", "--yes", "--json", variables=home)
        database.execute("UPDATE sessions SET updated_at = '2026-11-28 02:50:00' WHERE name = 'files'")
        database.execute(
            "INSERT INTO messages (session_id, role, content_json, created_timestamp) VALUES"
            " ((SELECT id FROM sessions WHERE name = 'files'), 'user', ?, 4000000000)",
            ('[{"type": "text", "text": "one thing more"}]',),
        )
        database.commit()
        again = await own_errand.run("import", "--yes", "--json", variables=home)
    assert (goose.program, goose.sessions, goose.new, goose.problem) == ("goose", 3, 3, "")
    assert msgspec.json.decode(taken.out, type=DataImportResult).conversations == 4
    grown = msgspec.json.decode(again.out, type=DataImportResult)
    assert (grown.conversations, grown.grown, grown.nodes) == (0, 1, 1)


async def test_views_in_a_database_of_another_program_in_the_place_of_that_of_goose_are_not_read(
    own_errand: Errand, tmp_path: Path
) -> None:
    path = tmp_path / ".local" / "share" / "goose" / "sessions" / "sessions.db"
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as database:
        database.executescript((_REAL / "opencode" / "opencode.sql").read_text())
        database.executescript("CREATE VIEW sessions AS SELECT 'one' AS id; CREATE VIEW messages AS SELECT 1 AS id")
        database.commit()
    (goose,) = _found((await own_errand.run("import", "--json", variables={"HOME": str(tmp_path)})).out)
    assert (goose.program, goose.sessions) == ("goose", 0)
    assert "it is not the database of goose" in goose.problem


async def test_a_program_can_be_chosen_and_its_folder_is_that_of_its_variable(
    own_errand: Errand, tmp_path: Path
) -> None:
    variables = {"HOME": str(tmp_path / "home"), "PI_CODING_AGENT_DIR": str(tmp_path / "elsewhere")}
    _pi_session(tmp_path / "elsewhere" / "sessions" / "--x--", "one", _message(1, "user", "hello"))
    (pi,) = _found((await own_errand.run("import", "--json", variables=variables)).out)
    other = await own_errand.run("import", "--program", "codex", "--yes", variables=variables)
    wrong = await own_errand.run("import", "--program", "pii", variables=variables)
    with_path = await own_errand.run("import", str(tmp_path), "--yes", variables=variables)
    assert pi.path == str(tmp_path / "elsewhere" / "sessions")
    assert "No sessions of codex were found" in other.out and ".codex/sessions" in other.out
    assert (wrong.code, "invalid choice: 'pii'" in wrong.err) == (2, True)
    assert (with_path.code, "cannot be used with PATH" in with_path.err) == (2, True)


async def test_what_is_no_session_a_link_and_a_broken_database_stop_nothing(own_errand: Errand, tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path)}
    sessions = tmp_path / ".pi" / "agent" / "sessions" / "--x--"
    outside = _pi_session(tmp_path / "outside", "secret", _message(1, "user", "not to be read"))
    _pi_session(sessions, "one", _message(1, "user", "hello"))
    (sessions / "link.jsonl").symlink_to(outside)
    (sessions / "noise.jsonl").write_bytes(b"\x00\xff" * 1_000)
    database = tmp_path / ".local" / "share" / "opencode" / "opencode.db"
    database.parent.mkdir(parents=True)
    database.write_bytes(b"SQLite format 3\x00" + b"\x07" * 4_000)
    opencode, pi = _found((await own_errand.run("import", "--json", variables=home)).out)
    listed = await own_errand.run("import", variables=home)
    assert (pi.sessions, pi.new) == (1, 1)
    assert opencode.sessions == 0 and "cannot be read" in opencode.problem
    assert "opencode.db cannot be read" in " ".join(listed.out.split())


async def test_a_session_of_several_files_counts_even_if_the_newest_of_them_says_nothing(
    own_errand: Errand, tmp_path: Path
) -> None:
    home = {"HOME": str(tmp_path)}
    chats = tmp_path / ".gemini" / "tmp" / "work" / "chats"
    chats.mkdir(parents=True)
    for file in (_REAL / "gemini" / "work" / "chats").glob("*-bc54ec71.jsonl"):
        shutil.copy(file, chats)
    os.utime(chats / "session-2026-11-23T19-07-bc54ec71.jsonl", (1_000_000_000, 1_000_000_000))
    (sessions,) = _found((await own_errand.run("import", "--json", variables=home)).out)
    taken = await own_errand.run("import", "--yes", variables=home)
    (after,) = _found((await own_errand.run("import", "--json", variables=home)).out)
    assert (sessions.program, sessions.sessions, sessions.new) == ("gemini-cli", 1, 1)
    assert "1 conversation, 15 messages" in taken.out
    assert (after.new, after.grown, after.present) == (0, 0, 1)
