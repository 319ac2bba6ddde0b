"""Hostile import files: engines killed during an import or delete, zip bombs, impossible numbers."""

import sqlite3
import zipfile
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from errand.client.connection import Connection
from errand.client.errors import CallError
from errand.client.launch import connect
from errand.engine.data.export_format import ConversationLine, EndLine, Header, NodeLine
from errand.protocol.conversations import (
    CONVERSATION_CHANGE,
    CONVERSATION_LIST,
    ConversationChangeParams,
    ConversationListParams,
)
from errand.protocol.data import DATA_IMPORT, DataImportParams
from errand.system.paths import Paths
from tests.attacks.campaign import Campaign
from tests.support.command_line import Errand
from tests.support.limits import WAIT_LIMIT_S
from tests.support.processes import until
from tests.support.records import NOW, conversation, node


def export_of(file: Path, count: int) -> None:
    """An export with one conversation of this many entries."""
    encoder = msgspec.json.Encoder()
    with file.open("wb") as lines:

        def line(value: msgspec.Struct) -> None:
            lines.write(encoder.encode(value) + b"\n")

        line(Header(errand_export=1, exported_at=NOW))
        line(ConversationLine(record=conversation("conv_big")))
        for number in range(count):
            parent = f"node_{number - 1}" if number else None
            line(NodeLine(record=node(f"node_{number}", parent, "conv_big", f"Entry {number}. " * 40)))
        line(EndLine(conversations=1, nodes=count))


def stored(home: Path) -> int:
    """The number of entries in a database, read beside the engine."""
    try:
        with closing(sqlite3.connect(f"file:{home / 'errand.db'}?mode=ro", uri=True)) as database:
            return int(database.execute("SELECT count(*) FROM nodes").fetchone()[0])
    except sqlite3.OperationalError:
        return 0  # it does not exist yet


async def connected(errand: Errand) -> Connection:
    return await connect(Paths(errand.home), "test")


async def test_an_import_cut_by_a_crash_is_taken_back_and_a_delete_goes_on_at_the_next_start(
    campaign: Campaign, own_errand: Errand, workspace: Path
) -> None:
    count = campaign.rounds(4_000, 20_000)
    export_of(workspace / "big.jsonl", count)
    await killed_amid(own_errand, ("import", "big.jsonl"), lambda: stored(own_errand.home) > 0)
    assert 0 < stored(own_errand.home) < count
    assert (await own_errand.run("tasks")).code == 0
    await until(lambda: stored(own_errand.home) == 0, WAIT_LIMIT_S)
    again = await own_errand.run("import", "big.jsonl")
    assert (again.code, again.out) == (0, f"Imported: 1 conversation, {count:,} messages.\n")
    assert stored(own_errand.home) == count
    await archive(own_errand)
    await killed_amid(own_errand, ("delete", "conv_big", "--yes"), lambda: stored(own_errand.home) < count)
    assert 0 < stored(own_errand.home) < count
    assert (await own_errand.run("tasks")).code == 0
    await until(lambda: stored(own_errand.home) == 0, WAIT_LIMIT_S)
    assert await archived(own_errand) == 0
    campaign.count("imports and deletes cut by a crash", 2)


async def killed_amid(errand: Errand, command: tuple[str, ...], is_amid: Callable[[], bool]) -> None:
    """Start a command, and kill it and the engine once it is running."""
    process = await errand.start(*command)
    try:
        await until(is_amid, WAIT_LIMIT_S)
    finally:
        process.kill()  # first: it would start another engine
        errand.kill_engine()
        await process.wait()


async def archive(errand: Errand) -> None:
    client = await connected(errand)
    await client.call(CONVERSATION_CHANGE, ConversationChangeParams(conversation_id="conv_big", archived=True))
    await client.close()


async def archived(errand: Errand) -> int:
    client = await connected(errand)
    listing = await client.call(CONVERSATION_LIST, ConversationListParams(archived=True))
    await client.close()
    return len(listing.conversations)


def zip_of(file: Path, pieces: Iterable[bytes], method: int = zipfile.ZIP_DEFLATED) -> None:
    with zipfile.ZipFile(file, "w", method) as archive, archive.open("conversations.json", "w") as member:
        for piece in pieces:
            member.write(piece)


async def test_bombs_are_refused_in_words_with_little_memory(
    campaign: Campaign, errand: Errand, workspace: Path
) -> None:
    """Megabytes that unpack to gigabytes, an endless record, a record of brackets only."""
    mib = b" " * 1024 * 1024
    zip_of(workspace / "blank.zip", [b'[{"mapping": {}', *[mib] * campaign.rounds(60, 2_000), b"}]"])
    zip_of(workspace / "long.zip", [b'[{"mapping": {}, "title": "', *[b"x" * 1024 * 1024] * 70], zipfile.ZIP_STORED)
    zip_of(workspace / "dense.zip", [b'[{"mapping": {', b'"a":[],' * 1_200_000, b'"b":[]}}]'])
    (workspace / "dense.jsonl").write_bytes(
        b'{"parentUuid":null,"sessionId":"s","message":[' + b"[]," * 1_500_000 + b"[]]}\n"
    )
    says = {
        "blank.zip": "unpacks to more than 100 times its size",
        "long.zip": "is larger than 32 MB",
        "dense.zip": "has more than 1,000,000 values",
        "dense.jsonl": "has more than 1,000,000 values",
    }
    assert (await errand.run("tasks")).code == 0
    pid = errand.engine_pid()
    before = peak_mb(pid)
    client = await connected(errand)
    for name, what in says.items():
        with pytest.raises(CallError, match=f"{what}.*Nothing was imported"):
            await client.call(DATA_IMPORT, DataImportParams(path=str(workspace / name)))
    await client.close()
    grown = peak_mb(pid) - before
    assert grown < 300, "a bomb goes off"
    campaign.peak("memory of a bomb, MB", grown)


def peak_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
