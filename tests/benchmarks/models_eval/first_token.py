"""The time until the first token of a message, of a second conversation in the same folder, and of a repeated prompt.

What a server keeps of a request speeds up the next one as far as both begin alike. The ratio of the second row to the
third says what is lost between two conversations.
"""

import asyncio
import json
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from errand.client.connection import CallError, Connection
from errand.client.launch import connect
from errand.protocol.events import EventRecord, TaskMessage, TaskUpdate
from errand.protocol.tasks.methods import TASK_START, TASK_STOP, TaskIdParams, TaskStartParams
from errand.protocol.usage import Usage
from errand.system.paths import Paths
from tests.benchmarks.bench import end_engine, home, workspace_in
from tests.benchmarks.models_eval.model import EvaluatedModel
from tests.benchmarks.models_eval.relay import TokenRelay

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
            async with TokenRelay(model.api_base) as relay:
                measure = _Measurement(connection, workspace, model, relay).measure
                await connection.subscribe_scope("all", "full")
                first = await measure("first conversation", "hi")
                (workspace / _ADDED_FILE).write_text("Done.\n", "utf-8")
                second = await measure("second conversation", "hello")
                return [first, second, await measure("the same prompt again", "hello")]
        finally:
            await end_engine(connection, folder)


def first_token_table(rows: list[FirstToken]) -> str:
    """Return the rows as a table, and the ratio of the last two if both had a reply."""
    head = "| | tokens of the prompt | of them cached | first token (s) |\n|---|---|---|---|\n"
    lines = (f"| {row.name} | {row.prompt_tokens} | {row.cached_tokens} | {row.seconds:.2f} |\n" for row in rows)
    _, second, repeated = (row.seconds for row in rows)
    ratio = f"{second / repeated:.2f} ×" if second and repeated else "unknown, there was no reply"
    return f"{head}{''.join(lines)}The second over the repeated one: {ratio}"


@dataclass(frozen=True, slots=True)
class _Measurement:
    """Measures messages to a model in new conversations of one folder."""

    connection: Connection
    workspace: Path
    model: EvaluatedModel
    relay: TokenRelay

    async def measure(self, name: str, text: str) -> FirstToken:
        """Send the message in a conversation in which nothing but a reply is asked for; stop what follows the reply."""
        usages: list[Usage] = []
        replied, ended = asyncio.Event(), asyncio.Event()

        def listen(message: object) -> None:
            match message:
                case EventRecord(event=TaskMessage(node=node)) if node.role == "assistant" and node.usage is not None:
                    usages.append(node.usage)
                    replied.set()
                case EventRecord(event=TaskUpdate(task=task)) if task.outcome.ended_at is not None:
                    replied.set()
                    ended.set()
                case _:
                    pass

        unsubscribe = self.connection.subscribe(listen)
        first_token, began = self.relay.next_first_token(), time.monotonic()
        task = (await self.connection.call(TASK_START, self._params(text))).task
        await replied.wait()
        with suppress(CallError):  # it may have ended
            await self.connection.call(TASK_STOP, TaskIdParams(task_id=task.id))
        await ended.wait()
        unsubscribe()
        if not usages or not first_token.done():
            return FirstToken(name, 0, 0, 0.0)
        read, cached = usages[0].input_tokens, usages[0].cache_read_tokens
        return FirstToken(name, read, cached, first_token.result() - began)

    def _params(self, text: str) -> TaskStartParams:
        return TaskStartParams(
            prompt=text,
            model=self.model.name,
            api_base=self.relay.url,
            api_key=self.model.key,
            workspace=str(self.workspace),
            approve="never",
            attended=False,
            max_turns=1,
        )
