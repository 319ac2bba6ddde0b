"""Sessions that real programs wrote: files/real holds their short form, and the outline of what is imported from each.

tests/real/sessions makes them anew.
"""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from errand.engine.agent.history.conversion import messages_of
from errand.engine.core.messages import AssistantMessage, ToolResultMessage
from errand.protocol.blocks import Block, NoticeBlock, SummaryBlock, ToolResultBlock
from errand.protocol.conversations import Conversation, Node
from errand.protocol.data import DataImportResult
from tests.engine.data.importers.test_formats import every_node, shown
from tests.engine.data.test_round_trip import Home, home

REAL = Path(__file__).parent / "files" / "real"
PROGRAMS = ("opencode", "gemini", "codex", "claude", "pi", "goose")
_MAX_TEXT_LENGTH = 160


def sessions_of(program: str, folder: Path) -> Path:
    """A copy of the program's folder of sessions; its database is made from the statements."""
    copy = folder / program
    shutil.copytree(REAL / program, copy)
    for statements in copy.rglob("*.sql"):
        with closing(sqlite3.connect(statements.with_suffix(".db"))) as database:
            database.executescript(statements.read_text())
        statements.unlink()
    return copy


async def conversations(data_home: Home) -> list[tuple[Conversation, tuple[Node, ...]]]:
    """Oldest first, with their nodes."""
    stored = (await data_home.database.conversations.page()).conversations
    return [(each, await every_node(data_home, each.id)) for each in sorted(stored, key=lambda each: each.id)]


async def outline(data_home: Home, done: DataImportResult) -> str:
    """Each conversation with its nodes in order; a node that does not follow the one above names its parent."""
    titles = {each.id: each.title for each, _ in await conversations(data_home)}
    lines: list[str] = []
    for conversation, nodes in await conversations(data_home):
        lines.append(f"# {conversation.title}")
        numbers = {node.id: number for number, node in enumerate(nodes, 1)}
        for number, node in enumerate(nodes, 1):
            parent = numbers.get(node.parent_id or "", 0)
            after = "" if parent == number - 1 else f" (after {parent})"
            lines.append(
                f"{number}{after} {_speaker(node)}: {', '.join(_shown(b, numbers, titles) for b in node.blocks)}"
            )
        lines.append("")
    left = ", ".join(f"{each.kind} {each.count}" for each in sorted(done.left, key=lambda each: each.kind))
    return "\n".join((*lines, f"Left: {left or 'nothing'}", ""))


def _speaker(node: Node) -> str:
    who = node.role if node.role != "user" else f"task from {node.task_from}" if node.task_from else node.author
    state = "" if node.status == "complete" else f" [{node.status}: {node.error}]"
    return f"{who}{state}"


def _shown(block: Block, numbers: dict[str, int], titles: dict[str, str]) -> str:
    match block:
        case NoticeBlock(text=text):
            for conversation_id, title in titles.items():
                text = text.replace(conversation_id, f"-> {title}")
            return f"notice {text}"
        case SummaryBlock(text=text, until_id=until_id, nodes=nodes):
            return f"summary of {nodes} nodes until {numbers[until_id]}: {text}"
        case ToolResultBlock(details=dict() as details):
            named_details = {key: titles.get(str(value), value) for key, value in details.items()}
            return f"{shown(block)[:_MAX_TEXT_LENGTH]} {named_details}"
        case _:
            return shown(block)[:_MAX_TEXT_LENGTH]


@pytest.mark.parametrize("program", PROGRAMS)
async def test_sessions_of_a_real_program_arrive_whole(tmp_path: Path, program: str) -> None:
    async with home(tmp_path / "home") as data_home:
        done = await data_home.take(sessions_of(program, tmp_path))
        assert await outline(data_home, done) == (REAL / f"{program}.txt").read_text()


@pytest.mark.parametrize("program", PROGRAMS)
async def test_model_gets_a_call_for_each_result_when_an_imported_conversation_goes_on(
    tmp_path: Path, program: str
) -> None:
    async with home(tmp_path / "home") as data_home:
        await data_home.take(sessions_of(program, tmp_path))
        for conversation, _ in await conversations(data_home):
            (agent,) = await data_home.database.agents.list(conversation.id)
            messages = messages_of(await data_home.database.nodes.path(agent.head_id or ""))
            open_calls: list[str] = []
            for message in messages:
                if isinstance(message, ToolResultMessage):
                    open_calls.remove(message.tool_call_id)
                else:
                    assert open_calls == []
                    calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
                    open_calls = [call.id for call in calls]
            assert open_calls == []


@pytest.mark.parametrize("program", PROGRAMS)
async def test_second_import_of_the_same_sessions_changes_nothing(tmp_path: Path, program: str) -> None:
    async with home(tmp_path / "home") as data_home:
        folder = sessions_of(program, tmp_path)
        done = await data_home.take(folder)
        before = await data_home.rows()
        again = await data_home.take(folder)
        assert (again.conversations, again.nodes, again.present) == (0, 0, done.conversations)
        assert await data_home.rows() == before


async def test_fork_without_its_origin_says_that_the_beginning_is_missing(tmp_path: Path) -> None:
    (fork,) = sessions_of("codex", tmp_path).rglob("*092a-7aa0-8896-0f00f9a30b93.jsonl")
    alone = tmp_path / "alone" / fork.name
    alone.parent.mkdir()
    fork.rename(alone)
    async with home(tmp_path / "home") as data_home:
        done = await data_home.take(alone)
        ((_, nodes),) = await conversations(data_home)
        assert [shown(block) for node in nodes for block in node.blocks] == ["go another way", "Another way it is."]
        assert "beginnings of forked sessions, whose origin is not here" in {left.kind for left in done.left}


async def test_links_to_other_sessions_are_not_followed(tmp_path: Path) -> None:
    sessions = sessions_of("codex", tmp_path)
    (fork,) = sessions.rglob("*092a-7aa0-8896-0f00f9a30b93.jsonl")
    (origin,) = sessions.rglob("*fe7f-7e83-a14b-5e3fbb96071b.jsonl")
    moved = origin.rename(tmp_path / "outside.jsonl")
    origin.symlink_to(moved)
    async with home(tmp_path / "home") as data_home:
        done = await data_home.take(fork)
        assert "beginnings of forked sessions, whose origin is not here" in {left.kind for left in done.left}


async def results(data_home: Home) -> list[str]:
    every = [node for _, nodes in await conversations(data_home) for node in nodes]
    return [block.text for node in every for block in node.blocks if isinstance(block, ToolResultBlock)]


async def test_long_output_of_claude_code_is_read_from_its_file(tmp_path: Path) -> None:
    sessions = sessions_of("claude", tmp_path)
    async with home(tmp_path / "home") as data_home:
        await data_home.take(sessions)
        assert any(text.endswith("The end of a long output.\n") for text in await results(data_home))


@pytest.mark.parametrize("kind", ["link", "path", "missing"])
async def test_long_output_outside_of_the_session_is_not_read(tmp_path: Path, kind: str) -> None:
    sessions = sessions_of("claude", tmp_path)
    secret = tmp_path / "secret.txt"
    secret.write_text("a secret")
    (output,) = sessions.rglob("*.txt")
    (session,) = (file for file in sessions.rglob("*.jsonl") if output.name in file.read_text())
    output.unlink()
    if kind == "link":
        output.symlink_to(secret)
    elif kind == "path":
        text = session.read_text().replace(f"tool-results/{output.name}", f"tool-results/../../../..{secret}")
        session.write_text(text)
    async with home(tmp_path / "home") as data_home:
        done = await data_home.take(sessions)
        assert not any("a secret" in text for text in await results(data_home))
        assert "long outputs, whose files are not here" in {left.kind for left in done.left}


async def test_sub_agents_come_with_the_file_of_their_session(tmp_path: Path) -> None:
    sessions = sessions_of("claude", tmp_path)
    (agent,) = sessions.rglob("agent-*.jsonl")
    session = agent.parent.parent.with_suffix(".jsonl")
    async with home(tmp_path / "home") as data_home:
        assert (await data_home.take(session)).conversations == 2
        assert (await data_home.take(agent)).present == 1


async def test_session_with_a_very_long_first_line_is_recognised(tmp_path: Path) -> None:
    (session,) = (
        file for file in sessions_of("claude", tmp_path).rglob("*.jsonl") if "what colour" in file.read_text()
    )
    first = '{"type": "queue-operation", "operation": "enqueue", "content": "' + "x" * 600_000 + '"}\n'
    session.write_text(first + session.read_text())
    async with home(tmp_path / "home") as data_home:
        assert (await data_home.take(session)).source == "Claude Code"
