"""Keys in the environment, in files, in what tools print and in errors: afterwards they are looked for everywhere."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from errand.client.connection import Connection
from errand.client.launch import connect
from errand.protocol.blocks import ToolResultBlock
from errand.protocol.conversations import CONVERSATION_NODES, ConversationNodesParams
from errand.system.paths import Paths
from tests.support.command_line import Errand
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.processes import until

# The key that Errand itself uses: no format of a provider.
OWN = "my-secret-0123456789abcdef"
# Keys of others, by the way they come in.
FILE, PRINTED, HEADER, ADDRESS, ERROR, SETTING = (
    f"{prefix}{''.join(chr(97 + (index * step) % 26) for index in range(30))}{step}77"
    for step, prefix in ((3, "ghp_"), (5, "sk-proj-"), (7, ""), (9, ""), (11, "glpat-"), (15, "hf_"))
)
OF_OTHERS = (FILE, PRINTED, HEADER, ADDRESS, ERROR, SETTING)
VARIABLES = {
    "OPENAI_API_KEY": OWN,
    "GITHUB_TOKEN": f"{PRINTED}env",
    "DATABASE_URL": f"postgres://me:{ADDRESS}@db/shop",
}
_LINES = (
    "cat .env keys.json; ",
    f"echo 'Authorization: Bearer {HEADER}' https://me:{ADDRESS}@host/x {PRINTED}; ",
    f"echo {ERROR} >&2; ",
    "printf my-secret-; sleep 0.05; echo 0123456789abcdef; ",  # in two pieces
    "seq 1 9000; cat .env; ",  # long output is stored in a file
    "cat /proc/self/environ | tr '\\0' '\\n'; tr '\\0' ' ' < /proc/$PPID/cmdline; cat /proc/$PPID/environ; exit 3",
)
_REPLIES = [
    Reply(calls=(Call("shell", {"command": "".join(_LINES)}),)),
    Reply(calls=(Call("code", {"action": "read", "path": ".env"}),)),
    Reply(calls=(Call("code", {"action": "patch", "path": ".env", "old": "MODE=dev", "new": "MODE=test"}),)),
    Reply(status=400, error=f"The key {OWN} of {ERROR} may not do that at https://me:{ADDRESS}@host"),
]


def plant(workspace: Path) -> None:
    (workspace / ".env").write_text(f"OPENAI_API_KEY={OWN}\nGITHUB={FILE}\nMODE=dev\n")
    (workspace / "keys.json").write_text(msgspec.json.encode({"own": OWN, "password": SETTING}).decode())


def holders(folder: Path, *keys: str) -> Iterator[str]:
    """The files below the folder that hold one of the keys."""
    for file in (Path(parent) / name for parent, _, names in os.walk(folder) for name in names):
        data = file.read_bytes() if file.is_file() else b""
        yield from (f"{key} in {file.relative_to(folder)}" for key in keys if key.encode() in data)


@pytest.fixture
async def terminal_output(own_errand: Errand, workspace: Path) -> str:
    """Run a task with planted keys and return what the terminal shows; the engine still runs."""
    plant(workspace)
    async with ModelServer(replies=_REPLIES) as server:
        variables = VARIABLES | {"OPENAI_BASE_URL": server.url}
        done = await own_errand.run("run", "--approve", "all", "--model", "openai/gpt-5", "go", variables=variables)
        sent = b"".join(msgspec.json.encode(request.messages) for request in server.requests).decode()
    assert len(server.requests) == 4
    assert OWN not in sent, "what a tool read of the app's own key reaches no model"
    assert FILE in sent and PRINTED in sent, "the conversation itself holds what tools print"
    return done.out + done.err


async def test_the_own_key_is_nowhere_and_those_of_others_only_in_the_conversation(
    own_errand: Errand, workspace: Path, tmp_path: Path, terminal_output: str
) -> None:
    assert OWN not in terminal_output
    home = own_errand.home
    # `replaced/` has the bytes of the person's own files, exactly as they were, so that a change can be undone.
    assert [
        occurrence
        for occurrence in holders(home, OWN)
        if "in keys/" not in occurrence and "in replaced/" not in occurrence
    ] == []
    assert (home / "replaced").stat().st_mode & 0o077 == 0
    assert list(holders(home / "logs", *OF_OTHERS)) == []
    doctor = await own_errand.run("doctor")
    assert not any(key in doctor.out + doctor.err for key in (OWN, *OF_OTHERS))
    await _exports(own_errand, tmp_path)
    task_id = (await own_errand.task("error")).id
    record = tmp_path / "task.rec"
    assert (await own_errand.run("record", task_id, "--to", str(record))).code == 0
    assert list(holders(record.parent / "exports", OWN, *OF_OTHERS)) == []
    assert not any(key.encode() in record.read_bytes() for key in (OWN, *OF_OTHERS))
    connection = await connect(Paths(home), "test")
    try:
        assert FILE in await _results(connection, own_errand), "a person still sees what a tool printed"
    finally:
        await connection.close()


async def _exports(errand: Errand, folder: Path) -> None:
    """No export holds a key, in any format; what was left out is said, and can be kept."""
    exports = folder / "exports"
    exports.mkdir()
    for form in ("json", "markdown", "html"):
        done = await errand.run("export", "--to", str(exports / form), "--format", form)
        assert (done.code, "secrets were redacted in" in done.out) == (0, True), (form, done.out, done.err)
    assert list(holders(exports, OWN, *OF_OTHERS)) == []
    unredacted = folder / "kept"
    unredacted.mkdir()
    assert (await errand.run("export", "--to", str(unredacted / "json"), "--keep-secrets")).code == 0
    assert list(holders(unredacted, OWN)) == []
    assert any(occurrence.startswith(FILE) for occurrence in holders(unredacted, FILE))


async def _results(connection: Connection, errand: Errand) -> str:
    params = ConversationNodesParams(conversation_id=(await errand.task("error")).conversation_id)
    nodes = (await connection.call(CONVERSATION_NODES, params)).nodes
    return "".join(block.text for node in nodes for block in node.blocks if isinstance(block, ToolResultBlock))


async def test_no_process_shows_a_key_to_those_who_list_processes(own_errand: Errand, workspace: Path) -> None:
    call = Call("shell", {"command": "touch ready; sleep 60"})
    async with ModelServer(replies=[Reply(calls=(call,))]) as server:
        variables = VARIABLES | {"OPENAI_BASE_URL": server.url}
        options = ("--approve", "all", "--model", "openai/gpt-5", "go")
        process = await own_errand.start("run", *options, variables=variables)
        await until((workspace / "ready").exists)
        process_texts = await asyncio.to_thread(_shown_by, own_errand.engine_pid())
        process.terminate()
        await process.wait()
    assert len(process_texts) >= 3, "the engine, its watchdog and the command"
    assert not any(key.encode() in text for text in process_texts for key in (OWN, *OF_OTHERS))


def _shown_by(pid: int) -> list[bytes]:
    """Command lines and environments of a process and all below it. A process may end meanwhile."""
    texts: list[bytes] = []
    with suppress(ProcessLookupError, FileNotFoundError):
        for name in ("cmdline", "environ"):
            texts.append(Path(f"/proc/{pid}/{name}").read_bytes())
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            texts += _shown_by(int(child))
    return texts


def test_the_keys_of_this_test_are_distinct() -> None:
    assert len({OWN, *OF_OTHERS}) == 7
