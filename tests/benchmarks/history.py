"""A stored history of realistic size and kind: what the rows of searches, lists and windows look at.

Built once in build/benchmarks, in some minutes, and copied for each row. An engine has finished its memory's index:
what it does in the first minutes with a database that it did not write is not measured with what a person waits for.
"""

import asyncio
import hashlib
import inspect
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec.structs import replace

from errand.engine.storage.database import Database
from errand.engine.storage.records import agents, conversations, nodes, tasks
from errand.engine.storage.sql import schema, tables
from errand.engine.storage.sql.statements import Write
from errand.engine.storage.sqlite import search_index
from errand.engine.storage.sqlite.engines import sqlite_url
from errand.protocol.base import JsonObject
from errand.protocol.blocks import Block, TextBlock, ToolCallBlock, ToolResultBlock
from errand.protocol.conversations import Node, Role
from errand.protocol.memory import MEMORY_STATS, MemoryStatsParams
from errand.protocol.tasks.task import replace_fields
from errand.system.paths import Paths
from tests.benchmarks.bench import engine
from tests.support.records import agent, conversation, node, task

# Conversations with one message each: what a long list is made of.
CONVERSATIONS = 100_000
# Conversations as people open them: messages, replies and tool cards.
WORKED = 50
LONG_NODES = 10_000
RARE = "zyzzyva"

_BEGAN = datetime(2024, 9, 1, 8, tzinfo=UTC)
_APART = timedelta(minutes=7)
# Messages that were imported later than newer ones: they are stored after them, and older by so much.
_IMPORTED = (range(60_000, 65_000), range(99_000, 100_000))
_OLDER = timedelta(days=3 * 365)
_WORKED_BEGAN = datetime(2026, 1, 10, 8, tzinfo=UTC)
_EXCHANGES = 8
_CALLS = 6
_EXCHANGE_NODES = 2 + 2 * _CALLS
_COMMON = ("the", "tool", "error", "file", "test", "there")
_CJK = ("数据库", "搜索", "数据库搜索很慢", "データベース", "検索", "데이터", "검색이 느려요")
_BATCH = 5_000
_CACHE = Path(__file__).parents[2] / "build" / "benchmarks"


class Words:
    """Texts of 20,000 invented words, distributed as in natural languages (Zipf); the same ones in each run."""

    def __init__(self) -> None:
        self._chance = random.Random(1)
        letters, chance = "abcdefghijklmnoprstuvw", self._chance
        self._words = ["".join(chance.choices(letters, k=chance.randint(3, 9))) for _ in range(20_000)]
        self._words[: len(_COMMON)] = _COMMON
        self._weights: list[float] = []
        for rank in range(len(self._words)):
            self._weights.append((self._weights[-1] if self._weights else 0.0) + 1 / (rank + 1))

    def text(self, count: int) -> str:
        return " ".join(self.some(count))

    def some(self, count: int) -> list[str]:
        return self._chance.choices(self._words, cum_weights=self._weights, k=count)

    def reply(self) -> str:
        """Markdown as models write it: paragraphs, a list, and code in each third."""
        points = "\n".join(f"- **{self.text(1)}**: {self.text(9)} in `{self.text(1)}.py`" for _ in range(3))
        code = f"\n\n```python\n{self.code(8)}\n```" if self._chance.random() < 1 / 3 else ""
        return f"{self.text(35).capitalize()}.\n\n{points}{code}\n\n{self.text(30).capitalize()}."

    def code(self, lines: int) -> str:
        return "\n".join(self._statement() for _ in range(lines))

    def _statement(self) -> str:
        return f"    {'_'.join(self.some(2))} = {self.text(1)}({', '.join(self.some(3))})"


async def stored_history(paths: Paths) -> None:
    """Put a copy of the history into a new data directory."""
    source = _CACHE / f"history-{_key()}"
    if not source.exists():
        await _build(source)
    paths.prepare()
    await asyncio.to_thread(_copy, Paths(source), paths)


def _copy(source: Paths, paths: Paths) -> None:
    shutil.copyfile(source.database, paths.database)
    shutil.copytree(source.memory, paths.memory, dirs_exist_ok=True)


def worked_id(number: int) -> str:
    return f"work_{number:02}"


def _key() -> str:
    """Return a hash of this file and the schema: another history is built when they change."""
    modules = (sys.modules[__name__], schema, search_index, tables)
    sources = "".join(inspect.getsource(module) for module in modules)
    return hashlib.sha256(sources.encode()).hexdigest()[:12]


async def _build(source: Path) -> None:
    source.parent.mkdir(parents=True, exist_ok=True)
    for old in source.parent.glob("history-*"):
        shutil.rmtree(old)
    with tempfile.TemporaryDirectory(dir=source.parent) as folder:
        paths = Paths(Path(folder, "new"))
        paths.prepare()
        database = await Database.open(sqlite_url(paths.database), paths.home)
        await fill(database, CONVERSATIONS)
        await _fill_worked(database, Words())
        await database.close()
        async with engine(paths.home) as client:
            while (await client.call(MEMORY_STATS, MemoryStatsParams())).to_index:  # noqa: ASYNC110 - of another process
                await asyncio.sleep(1.0)
        os.rename(paths.home, source)


async def fill(database: Database, count: int) -> None:
    """`count` conversations with one message each: of a person, of an agent, or a result of a tool."""
    vocabulary = Words()
    for number in range(count):
        conversation_id = f"conv_{number:08}"
        at = _BEGAN + _APART * number - (_OLDER if any(number in some for some in _IMPORTED) else timedelta())
        database.journal.put(
            conversations.save(conversation(conversation_id, at=at)),
            nodes.save(replace(_single(vocabulary, number), conversation_id=conversation_id, created_at=at)),
        )
        if number % _BATCH == 0:
            await database.journal.flush()
    await database.journal.flush()


def _single(vocabulary: Words, number: int) -> Node:
    message = node(f"node_{number:08}", text=vocabulary.text(120))
    if number % 50 == 7:
        return _with_text(message, f"{_CJK[number // 50 % len(_CJK)]} {vocabulary.text(20)}")
    if number % 9_973 == 1:
        return _with_text(message, f"{vocabulary.text(30)} {RARE} {vocabulary.text(30)}")
    if number % 20 == 3:
        return replace(message, author="coder")
    match number % 3:
        case 0:
            return replace(_with_text(message, vocabulary.text(25)), role="user", author="user")
        case 1:
            return message
        case _:
            tool = ("shell", "code")[number % 2]
            # As long as a result may be in the index, or some lines.
            result = _result(f"call_{number}", tool, vocabulary.text(1_300 if number % 120 == 2 else 80))
            return replace(message, role="tool_result", author="engine", blocks=(result,))


def _with_text(message: Node, text: str) -> Node:
    return replace(message, blocks=(TextBlock(text=text),))


async def _fill_worked(database: Database, vocabulary: Words) -> None:
    """The conversations that a window opens, and a long one of the same kind, each with its agent at the end."""
    database.journal.put(agents.save_agent(replace(agent("coder"), name="Coder", conversation_id="conv_00000003")))
    for number in range(WORKED):
        database.journal.put(*_worked(vocabulary, worked_id(number), _EXCHANGES, number))
    await database.journal.flush()
    for batch in _batches(_worked(vocabulary, "long", LONG_NODES // _EXCHANGE_NODES + 1, WORKED)):
        database.journal.put(*batch)
        await database.journal.flush()


def _batches(writes: Iterator[Write]) -> Iterator[list[Write]]:
    batch: list[Write] = []
    for write in writes:
        batch.append(write)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    yield batch


def _worked(vocabulary: Words, conversation_id: str, exchanges: int, number: int) -> Iterator[Write]:
    at = _WORKED_BEGAN + timedelta(hours=number)
    yield conversations.save(
        replace(conversation(conversation_id, at=at), title=f"Work on {vocabulary.text(3)}", workspace="/tmp")
    )
    head: str | None = None
    for exchange in range(exchanges):
        begun = at + timedelta(seconds=30 * exchange)
        task_id = f"task_{conversation_id}_{exchange}"
        ended = replace_fields(
            task(task_id, 1 + _CALLS, begun, begun + timedelta(seconds=25)),
            conversation_id=conversation_id,
            agent_id=f"of_{conversation_id}",
            prompt=vocabulary.text(12),
            stop_reason="completed",
        )
        yield from tasks.add(ended)
        for index, (role, blocks) in enumerate(_exchange(vocabulary, f"{conversation_id}_{exchange}")):
            message = node(f"{conversation_id}_{exchange}_{index}", head, conversation_id)
            author = {"user": "user", "assistant": f"of_{conversation_id}"}.get(role, "engine")
            yield nodes.save(
                replace(
                    message,
                    role=role,
                    author=author,
                    blocks=blocks,
                    created_at=begun + timedelta(seconds=index),
                    task_id=task_id,
                    turn=(index + 1) // 2,
                )
            )
            head = message.id
    yield agents.save_agent(replace(agent(f"of_{conversation_id}", head_id=head), conversation_id=conversation_id))


def _exchange(vocabulary: Words, key: str) -> Iterator[tuple[Role, tuple[Block, ...]]]:
    """A message, some calls with their results, and the reply that ends it."""
    yield "user", (TextBlock(text=vocabulary.text(25)),)
    for number in range(_CALLS):
        tool, arguments, text, details = _work(vocabulary, number)
        call = ToolCallBlock(call_id=f"{key}_{number}", tool=tool, arguments=arguments)
        yield "assistant", (TextBlock(text=vocabulary.text(15)), call)
        yield "tool_result", (_result(call.call_id, tool, text, details),)
    yield "assistant", (TextBlock(text=vocabulary.reply()),)


def _result(call_id: str, tool: str, text: str, details: JsonObject | None = None) -> ToolResultBlock:
    lines = text.count("\n") + 1
    return ToolResultBlock(
        call_id=call_id, tool=tool, text=text, is_error=False, summary=f"{lines} lines", details=details
    )


def _work(vocabulary: Words, number: int) -> tuple[str, JsonObject, str, JsonObject]:
    """A tool, its arguments, its result and the details of that: commands, files read, found and changed."""
    path = f"src/{vocabulary.text(1)}/{vocabulary.text(1)}.py"
    timed: JsonObject = {"exit_code": 0, "duration_ms": 1_200}
    match number % 4:
        case 0:
            output = "\n".join(f"{path}::{'_'.join(vocabulary.some(4))} PASSED" for _ in range(40))
            return "shell", {"command": f"python -m pytest -q {path}"}, output, timed
        case 1:
            return "code", {"action": "read", "path": path}, vocabulary.code(80), {}
        case 2:
            hits = "\n".join(f"src/{vocabulary.text(1)}.py:{line}: {vocabulary.text(8)}" for line in range(10, 200, 10))
            return "code", {"action": "search", "path": ".", "pattern": vocabulary.text(1)}, hits, {}
        case _:
            return _change(vocabulary, path)


def _change(vocabulary: Words, path: str) -> tuple[str, JsonObject, str, JsonObject]:
    old: Sequence[str] = vocabulary.code(6).split("\n")
    new: Sequence[str] = vocabulary.code(8).split("\n")
    arguments: JsonObject = {"action": "edit", "path": path, "old": "\n".join(old), "new": "\n".join(new)}
    changed = "\n".join((*(f"-{line}" for line in old), *(f"+{line}" for line in new)))
    diff = f"--- a/{path}\n+++ b/{path}\n@@ -10,{len(old)} +10,{len(new)} @@\n{changed}\n"
    return "code", arguments, f"Changed {path}.", {"diff": diff, "added": len(new), "removed": len(old)}
