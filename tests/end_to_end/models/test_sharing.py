"""Behaviours 142 to 144: one machine holds the keys, another one uses its models."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.command_line import Errand
from tests.support.limits import WAIT_LIMIT_S
from tests.support.model_server import Call, ModelServer, Reply

OLLAMA = ("--models", "ollama/*")


@asynccontextmanager
async def shared(home: Path, upstream: str, *options: str) -> AsyncGenerator[dict[str, str]]:
    """`errand share-models` with a separate data directory; yields the variables that another machine needs."""
    there = Errand(home, home.parent)
    variables = {"OLLAMA_HOST": upstream.removesuffix("/v1")}
    process = await there.start("share-models", "--port", "0", *options, variables=variables)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(WAIT_LIMIT_S):
            line = (await process.stdout.readline()).decode()
        parts = line.removesuffix(".\n").split()
        token = await asyncio.to_thread(_token_in, Path(parts[-1]))
        yield {"ERRAND_PROXY_URL": parts[4], "ERRAND_PROXY_API_KEY": token}
    finally:
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(WAIT_LIMIT_S):
            await process.communicate()
        assert process.returncode == 0


async def test_a_task_works_with_the_models_of_another_machine(
    own_errand: Errand, workspace: Path, tmp_path: Path
) -> None:
    (workspace / "notes.txt").write_text("one\ntwo\n")
    replies = [Reply(calls=(Call("shell", {"command": "wc -l < notes.txt"}),)), Reply(text="It has 2 lines.")]
    model = ("--model", "proxy/ollama/test-model")
    upstream = ModelServer(replies)
    async with upstream, shared(tmp_path / "there", upstream.url, *OLLAMA) as variables:
        done = await own_errand.run("run", "--approve", "all", *model, "count the lines", variables=variables)
        result = str(upstream.requests[1].messages[-1]["content"])
    assert done.code == 0, done.err
    assert "It has 2 lines.\n• answered, nothing changed · 2 turns" in done.out
    assert result.strip() == "2"
    assert variables["ERRAND_PROXY_API_KEY"] not in done.out + done.err


async def test_its_models_are_listed_and_can_be_tried(own_errand: Errand, tmp_path: Path) -> None:
    async with (
        ModelServer([Reply(text="OK")] * 2) as upstream,
        shared(tmp_path / "there", upstream.url, *OLLAMA) as variables,
    ):
        listed = await own_errand.run("models", "--refresh", variables=variables)
        tried = await own_errand.run("models", "--test", "proxy", variables=variables)
    assert listed.code == 0, listed.err
    assert "Shared models" in listed.out
    assert "proxy/ollama/test-model" in listed.out
    assert tried.code == 0, tried.out + tried.err


async def test_servers_that_the_person_added_are_shared_too(own_errand: Errand, tmp_path: Path) -> None:
    there = Errand(tmp_path / "there", tmp_path)
    async with ModelServer([Reply(text="OK")]) as upstream:
        added = await there.run("models", "--add-server", upstream.url, "--name", "Office")
        assert added.code == 0, added.err
        await there.run("engine", "--stop")
        async with shared(tmp_path / "there", upstream.url) as variables:
            listed = await own_errand.run("models", "--refresh", variables=variables)
            done = await own_errand.run("run", "--model", "proxy/office/test-model", "hi", variables=variables)
    assert "proxy/office/test-model" in listed.out, listed.out + listed.err
    assert done.code == 0, done.err


async def test_what_cannot_be_shared_is_said_in_a_line(own_errand: Errand, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("")
    (tmp_path / "open").write_text("ann 0123456789abcdef0123456789abcdef\n")
    (tmp_path / "open").chmod(0o644)
    wrong = {
        "has no token": ("--token-file", str(tmp_path / "empty")),
        "`chmod 600 ": ("--token-file", str(tmp_path / "open")),
        "cannot be used": ("--host", "203.0.113.7"),
        "port must be 0-65535": ("--port", "70000"),
    }
    for error, arguments in wrong.items():
        done = await own_errand.run("share-models", *arguments)
        assert done.code in (1, 2)
        assert error in done.err
        assert "Traceback" not in done.err
    assert os.listdir(own_errand.home / "keys") in ([], ["share-tokens.txt"])


def _token_in(file: Path) -> str:
    return file.read_text().split()[1]
