"""The time until the first token of a message, of a second conversation in the same folder, and of a repeated prompt.

What a server keeps of a request speeds up the next one as far as both begin alike. The ratio of the second row to the
third says what is lost between two conversations.
"""

import asyncio
import json
import time
from dataclasses import dataclass
from pathlib import Path

from errand.client.connection import Connection
from errand.client.launch import connect
from errand.protocol.events import EventRecord, TaskMessage, TaskUpdate, TextDelta
from errand.protocol.tasks.methods import TASK_START, TaskStartParams
from errand.protocol.usage import Usage
from errand.system.paths import Paths
from tests.benchmarks.bench import end_engine, home, workspace_in
from tests.benchmarks.models_eval.model import EvaluatedModel

_FILES = ("notes.txt", "plan.md", "prices.csv")
_ADDED_FILE = "report.md"


@dataclass(frozen=True, slots=True)
class FirstToken:
    """One message of a conversation of its own: what the server read of it, and the seconds until the first token."""

    name: str
    prompt_tokens: int
    cached_tokens: int
    seconds: float


async def first_tokens(model: EvaluatedModel) -> list[FirstToken]:
    """Measure three conversations in one folder: a first one, one with another message, and that message again.

    Between the first and the second a file is added, as by a task.
    """
    with home() as folder:
        # What memory has on the second message would make its repetition another prompt.
        Paths(folder).settings.write_text(json.dumps({"recall_tokens": 0}), "utf-8")
        workspace = workspace_in(folder)
        for name in _FILES:
            (workspace / name).write_text(f"{name}\n", "utf-8")
        connection = await connect(Paths(folder), "first-token")
        try:
            await connection.subscribe_scope("all", "full")
            first = await _measure(connection, "first conversation", "hi", workspace, model)
            (workspace / _ADDED_FILE).write_text("Done.\n", "utf-8")
            second = await _measure(connection, "second conversation", "hello", workspace, model)
            return [first, second, await _measure(connection, "the same prompt again", "hello", workspace, model)]
        finally:
            await end_engine(connection, folder)


def first_token_table(rows: list[FirstToken]) -> str:
    """Return the rows as a table, and the ratio of the last two if both had a reply."""
    head = "| | tokens of the prompt | of them cached | first token (s) |\n|---|---|---|---|\n"
    lines = (f"| {row.name} | {row.prompt_tokens} | {row.cached_tokens} | {row.seconds:.2f} |\n" for row in rows)
    _, second, repeated = (row.seconds for row in rows)
    ratio = f"{second / repeated:.2f} ×" if second and repeated else "unknown, there was no reply"
    return f"{head}{''.join(lines)}The second over the repeated one: {ratio}"


async def _measure(connection: Connection, name: str, text: str, workspace: Path, model: EvaluatedModel) -> FirstToken:
    """Send the message in a new conversation, in which nothing but a reply is asked for; wait until it has ended."""
    first: list[float] = []
    usages: list[Usage] = []
    ended = asyncio.Event()

    def listen(message: object) -> None:
        match message:
            case TextDelta():
                first.append(time.monotonic())
            case EventRecord(event=TaskMessage(node=node)) if node.role == "assistant" and node.usage is not None:
                first.append(time.monotonic())
                usages.append(node.usage)
            case EventRecord(event=TaskUpdate(task=task)) if task.outcome.ended_at is not None:
                ended.set()
            case _:
                pass

    unsubscribe = connection.subscribe(listen)
    began = time.monotonic()
    await connection.call(
        TASK_START,
        TaskStartParams(
            prompt=text,
            model=model.name,
            api_base=model.api_base,
            api_key=model.key,
            workspace=str(workspace),
            approve="never",
            attended=False,
            max_turns=1,
        ),
    )
    await ended.wait()
    unsubscribe()
    if not usages:
        return FirstToken(name, 0, 0, 0.0)
    read, cached = usages[0].input_tokens, usages[0].cache_read_tokens
    return FirstToken(name, read, cached, first[0] - began)
