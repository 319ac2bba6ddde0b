"""`errand memory forget`: shows what goes, asks, removes it everywhere, and says what was removed and what stays."""

from pathlib import Path

import pytest

from tests.support.command_line import Errand
from tests.support.model_server import Call, ModelServer, Reply

pytestmark = pytest.mark.usefixtures("bare_commands")

MODEL = ("--model", "openai_compatible/test-model", "--approve", "all", "--api-base")
PROMPT = "the heirloom belongs to Wilhelmina of Ljubljana"
REPLIES = (Reply(calls=(Call("shell", {"command": "printf 'Wilhel%s\\n' mina"}),)), Reply(text="Noted."))


def places(home: Path) -> list[str]:
    return [str(file) for file in home.rglob("*") if file.is_file() and b"Wilhelmina" in file.read_bytes()]


async def found(errand: Errand) -> list[str]:
    return [str(line["nodeId"]) for line in (await errand.run("search", "Wilhelmina", "--json")).lines]


async def test_what_a_search_finds_is_forgotten_everywhere(own_errand: Errand) -> None:
    async with ModelServer(REPLIES) as server:
        assert (await own_errand.run("run", *MODEL, server.url, PROMPT)).code == 0
    nodes = await found(own_errand)
    assert len(nodes) == 2 and places(own_errand.home)
    asked = await own_errand.run("memory", "forget", *nodes)
    assert asked.code == 2 and "Confirm with --yes" in asked.err
    assert PROMPT in asked.out and "This permanently removes: 2 texts, 1 tool call record" in asked.out
    refused = await own_errand.run("memory", "forget", *nodes, "--json")
    assert refused.code == 2 and "Confirm with --yes" in str(refused.lines[0]["error"])
    assert await found(own_errand) == nodes
    several = await own_errand.run("memory", "forget", "_", "--yes")
    assert several.code == 2 and "messages match '_'" in several.err and "Noted." in several.err
    assert await found(own_errand) == nodes
    done = await own_errand.run("memory", "forget", nodes[0][-8:], nodes[1], "--yes")
    assert done.code == 0 and done.out.startswith("Forgotten: 2 texts, ") and "provider received" in done.err
    assert await found(own_errand) == [] and places(own_errand.home) == []
    task, page = await own_errand.task("completed"), own_errand.folder / "pages"
    calls = await own_errand.run("output", task.id)
    assert "Forgotten by you" in calls.out and "Wilhelmina" not in calls.out
    assert (await own_errand.run("export", "--to", str(page), "--format", "markdown")).code == 0
    (text,) = (file.read_text() for file in page.glob("*.md"))
    assert text.count("Forgotten by you") >= 2 and "Wilhelmina" not in text
    again = await own_errand.run("memory", "forget", *nodes)
    assert (again.code, again.out) == (0, "There was nothing left to forget.\n")
    (line,) = (await own_errand.run("memory", "log")).out.splitlines()
    assert "forgotten" in line and "2 texts" in line and "Wilhelmina" not in line


async def test_an_unknown_node_is_refused(own_errand: Errand) -> None:
    done = await own_errand.run("memory", "forget", "node_none", "--yes")
    assert done.code == 2 and "No message has the id 'node_none'" in done.err
