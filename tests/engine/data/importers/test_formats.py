"""Conversations of other programs: what each format yields, and which content is counted as skipped."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeAlias

import pytest

from errand.engine.data.importers.registry import FORMATS, format_of
from errand.protocol.blocks import (
    Block,
    FileBlock,
    ImageBlock,
    SummaryBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from errand.protocol.conversations import Node
from errand.protocol.data import DataImportResult, LeftOut
from tests.engine.data.test_round_trip import Home, home

FILES = Path(__file__).parent / "files"
CHATGPT = """
user: How many red pixels are there?
  assistant gpt-5: (Counting One pixel, and it is red.)
    assistant gpt-5: python{input: print(1)}
      tool_result: python=1
        assistant gpt-5: There is **one**.
  assistant gpt-4o: None that I can see.
"""
CLAUDE = """
user: When is high tide?, harbour.txt: ```` Harbour A ````
  assistant: (I have to look.), I look it up., web_search{query: tide}
    tool_result: web_search=Tides https://tides.test 11:40
      assistant: At 11:40.
        user: Thank you
  assistant: At noon.
"""
CODEX = """
user: List the files, [image]
  assistant gpt-5-codex: (**Looking**), shell{command: ['ls']}, apply_patch{input: *** Begin Patch}
    tool_result: shell=a.txt
      tool_result: apply_patch!=refused
        assistant gpt-5-codex: One file: `a.txt`.
          system: summary of 5: short
"""
CLAUDE_CODE = """
user: Fix the build
  assistant claude-opus-5: (Let me see.), I look at both., Read{file_path: a.py}, Bash{command: make}
    tool_result: Read=print(1)
      tool_result: Bash!=error 1[image]
        assistant claude-opus-5: It is mended.
        user: Try the other way, [image]
          assistant claude-opus-5: As you wish.
"""
OPENCODE = """
user: Add a page, [image]
  assistant claude-opus-5: (Hm.), write{filePath: p.html}, bash{command: x}
    tool_result: write=Wrote it
      tool_result: bash!=not found
        assistant claude-opus-5: Done.
"""
GOOSE = """
user: What is the weather?, [image]
  assistant: (Ask the tool.), I look., weather__get{place: here}
    tool_result: weather__get=Rain
      assistant: It rains.
"""
PI = """
user: Count the lines, [image]
  assistant claude-sonnet-5: (wc), bash{command: wc -l a}
    tool_result: bash=7 a
      assistant claude-sonnet-5: Seven.
user: Count the words instead
  system: summary of 5: short
    assistant claude-sonnet-5: Forty.
      user: ``` $ ls a ```
"""
PI_1 = "\n".join(PI.splitlines()[:5]) + "\n"
Case: TypeAlias = tuple[str, str, str, str, dict[str, int | None]]
CASES: tuple[Case, ...] = (
    ("chatgpt.json", "ChatGPT", "Red pixels", CHATGPT, {"voice messages": 1, "pictures": 1, "empty conversations": 1}),
    ("claude.json", "Claude", "Tide tables", CLAUDE, {"attached files": 1, "messages that cannot be read": 1}),
    ("codex.jsonl", "Codex", "List the files", CODEX, {"encrypted thoughts": 1, "instructions to the model": 2}),
    ("codex_1.jsonl", "Codex", "Say hi", "\nuser: Say hi\n  assistant: (Greet), Hi.\n", {"encrypted thoughts": None}),
    ("claude_code.jsonl", "Claude Code", "The build", CLAUDE_CODE, {"messages of sub-agents": 1}),
    ("opencode.json", "OpenCode", "Add a page", OPENCODE, {"texts that OpenCode added": 1, "attached files": 1}),
    ("goose.json", "goose", "Weather", GOOSE, {"contents of the kind “hologram”": 1}),
    ("goose.jsonl", "goose", "Weather", GOOSE, {"contents of the kind “hologram”": 1}),
    ("pi.jsonl", "pi", "Counting", PI, {"messages of the kind “custom”": 1}),
    ("pi_1.jsonl", "pi", "Count the lines", PI_1, {}),
)


async def taken(data_home: Home, path: Path) -> tuple[DataImportResult, list[tuple[str, str]]]:
    """The result, and title and outline of each conversation."""
    done = await data_home.take(path)
    conversations = (await data_home.database.conversations.page()).conversations
    outlines = [(each.title, outline(await every_node(data_home, each.id))) for each in conversations]
    return done, outlines


async def every_node(data_home: Home, conversation_id: str) -> tuple[Node, ...]:
    links = await data_home.database.nodes.links(conversation_id)
    return await data_home.database.nodes.several([node_id for node_id, _ in links])


def outline(nodes: Sequence[Node], parent_id: str | None = None, depth: int = 0) -> str:
    lines = [] if depth else ["\n"]
    for node in nodes:
        if node.parent_id == parent_id:
            model = f" {node.model}" if node.model else ""
            lines.append(f"{'  ' * depth}{node.role}{model}: {', '.join(map(shown, node.blocks))}\n")
            lines.append(outline(nodes, node.id, depth + 1))
    return "".join(lines)


def shown(block: Block) -> str:
    match block:
        case TextBlock(text=text):
            return " ".join(text.split())
        case ThinkingBlock(text=text):
            return f"({' '.join(text.split())})"
        case ToolCallBlock(tool=tool, arguments=arguments):
            return f"{tool}{{{', '.join(f'{name}: {value}' for name, value in arguments.items())}}}"
        case ToolResultBlock(tool=tool, text=text, is_error=is_error, images=images):
            return f"{tool}{'!' if is_error else ''}={' '.join(text.split())}{'[image]' * len(images)}"
        case SummaryBlock(text=text, nodes=nodes):
            return f"summary of {nodes}: {text}"
        case ImageBlock() | FileBlock():
            return f"[{type(block).__struct_config__.tag}]"
        case _:
            raise AssertionError(block)


@pytest.mark.parametrize(("name", "program", "title", "expected", "left"), CASES)
async def test_complete_conversation_tree_is_imported(
    tmp_path: Path, name: str, program: str, title: str, expected: str, left: dict[str, int | None]
) -> None:
    async with home(tmp_path / "home") as data_home:
        done, outlines = await taken(data_home, FILES / name)
        assert done.source == program
        assert dict(outlines)[title] == expected
        counted = {entry.kind: entry.count for entry in done.left}
        assert {kind: counted.get(kind) for kind in left} == left
        again = await data_home.take(FILES / name)
        assert (again.conversations, again.present) == (0, done.conversations)


async def test_imported_conversation_can_be_continued(tmp_path: Path) -> None:
    async with home(tmp_path / "home") as data_home:
        await data_home.take(FILES / "chatgpt.json")
        pixels = next(
            c for c in (await data_home.database.conversations.page()).conversations if c.title == "Red pixels"
        )
        (agent,) = await data_home.database.agents.list(pixels.id)
        branch = await data_home.database.nodes.path(agent.head_id or "")
        assert outline(branch[-1:], branch[-1].parent_id) == "\nassistant gpt-5: There is **one**.\n"
        assert (agent.name, pixels.workspace) == ("ChatGPT", str(data_home.paths.workspaces / pixels.id))
        assert [folder.name for folder in data_home.paths.workspaces.iterdir() if folder.name == pixels.id]
        assert (branch[0].created_at.timestamp(), pixels.updated_at.timestamp()) == (1767225600.5, 1767225700.0)
        assert [hit.node_id for hit in await data_home.database.search.find("print(1)")] == [branch[2].id]


async def test_folder_of_an_imported_conversation_is_kept_if_it_is_not_here(tmp_path: Path) -> None:
    async with home(tmp_path / "home") as data_home:
        for name in ("claude_code.jsonl", "chatgpt.json"):
            await data_home.take(FILES / name)
        conversations = (await data_home.database.conversations.page()).conversations
        assert {conversation.proposed_workspace for conversation in conversations} == {""}
        assert {conversation.imported_folder for conversation in conversations} == {"", "/home/nobody/app"}


async def test_import_counts_equal_the_imported_content(tmp_path: Path) -> None:
    async with home(tmp_path / "home") as data_home:
        done = await data_home.take(FILES / "claude_code.jsonl")
        assert done == DataImportResult(
            source="Claude Code",
            conversations=1,
            nodes=7,
            present=0,
            calls=2,
            pictures=2,
            left=(LeftOut(kind="messages of sub-agents", count=1),),
        )
        assert len(list(data_home.paths.attachments.glob("*/*.png"))) == 1


async def test_folder_of_sessions_is_imported_completely(tmp_path: Path) -> None:
    async with home(tmp_path / "home") as data_home:
        folder = tmp_path / "all" / "inside"
        folder.mkdir(parents=True)
        for name, *_ in CASES:
            (folder / name).write_bytes((FILES / name).read_bytes())
        (folder / "settings.json").write_text("{}")
        with closing(sqlite3.connect(folder / "sessions.db")) as database:
            database.execute("CREATE TABLE cookies (host, value)")
        (folder / "half.jsonl").write_bytes(b'{"errand_export":1,"exported_at":"2026-01-01T00:00:00Z"}\n{"type":')
        done = await data_home.take(folder.parent)
        assert done.conversations == 11
        left = {entry.kind: entry.count for entry in done.left}
        assert (left["other files"], left["files that cannot be read to their end"]) == (2, 1)


def test_files_are_attributed_to_their_own_program() -> None:
    for name, program, *_ in CASES:
        head = (FILES / name).read_bytes()
        fitting = [
            file_format.program
            for file_format in FORMATS
            if file_format.begins == head[:1] and all(s.search(head) for s in file_format.signs)
        ]
        detected = format_of(head)
        assert detected is not None and detected.program == program, (name, fitting)
    assert format_of(b"") is None and format_of(b"[1, 2]") is None and format_of(b'{"a": 1}\n') is None
