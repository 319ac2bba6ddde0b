"""Behaviours 44 and 45: queued messages and attachments survive kill -9 and reach the model."""

import base64
from pathlib import Path

import msgspec

from errand.client.connection import Connection
from errand.client.launch import read_endpoint
from errand.protocol.base import JsonObject
from errand.protocol.tasks.methods import TASK_FOLLOW_UP, TASK_STEER, TaskMessageParams
from errand.protocol.tasks.task import Task
from errand.system.paths import Paths
from tests.support.command_line import Errand, rest
from tests.support.model_server import ModelServer, Reply

MODEL = ("--model", "openai_compatible/test-model", "--api-base")
GIF = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")


async def test_words_and_pictures_that_waited_when_the_engine_was_killed_are_read_once_after_it(
    own_errand: Errand, workspace: Path
) -> None:
    (workspace / "shot").write_bytes(GIF)
    replies = [Reply(text="Nearly there", stall_after=2), Reply(text="I see."), Reply(text="It is done.")]
    async with ModelServer(replies=replies) as server:
        running = await own_errand.start("run", *MODEL, server.url, "work")
        await server.request(0)
        task = await own_errand.task("thinking")
        assert len((await _say(own_errand, task, str(workspace / "shot"))).queue) == 2
        own_errand.kill_engine()
        running.kill()
        await rest(running)
        resumed = await own_errand.run("resume", task.id)
        contents = [str(message["content"]) for message in server.requests[2].messages if message["role"] == "user"]
        parts = msgspec.convert(server.requests[1].messages[-1]["content"], list[JsonObject])
    assert resumed.code == 0, resumed.err
    assert "It is done.\n• answered, no tool used" in resumed.out
    assert [sum(text_part in text for text in contents) for text_part in ("look at this", "and then that")] == [1, 1]
    url = f"data:image/gif;base64,{base64.b64encode(GIF).decode()}"
    assert parts[-2:] == [{"type": "text", "text": "look at this"}, {"type": "image_url", "image_url": {"url": url}}]


async def _say(errand: Errand, task: Task, picture: str) -> Task:
    paths = Paths(errand.home)
    connection = Connection(lambda: read_endpoint(paths), "test")
    await connection.open()
    try:
        later = TaskMessageParams(task_id=task.id, text="and then that")
        await connection.call(TASK_FOLLOW_UP, later)
        now = TaskMessageParams(task_id=task.id, text="look at this", attachments=(picture,))
        return (await connection.call(TASK_STEER, now)).task
    finally:
        await connection.close()


async def test_a_file_is_attached_on_the_command_line(errand: Errand, workspace: Path) -> None:
    (workspace / "data.csv").write_text("a,b\n")
    async with ModelServer(replies=[Reply(text="Two columns.")]) as server:
        done = await errand.run("run", *MODEL, server.url, "--attach", "data.csv", "how many columns?")
        asked = server.requests[0].messages[-1]["content"]
    assert done.code == 0, done.err
    assert asked == f"how many columns?\n\n[Attached: `{workspace / 'data.csv'}`, 4 bytes]"
    refused = await errand.run("run", "--attach", "nothing.png", "x")
    assert (refused.code, "There is no file 'nothing.png'" in refused.err) == (2, True)
