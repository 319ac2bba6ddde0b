"""Behaviour 131: a task waits for a rate limit, also after the engine has died."""

from tests.support.command_line import Errand, rest
from tests.support.model_server import ModelServer, Reply

MODEL = ("--model", "openai_compatible/test-model", "--api-base")
HOUR = Reply(status=429, error="You have used all of your plan.", headers={"Retry-After": "3600"})


async def test_a_task_of_a_killed_engine_waits_on_by_itself_in_the_next_one(own_errand: Errand) -> None:
    async with ModelServer(replies=[HOUR, Reply(text="Here it is.")]) as server:
        process = await own_errand.start("run", "--approve", "all", *MODEL, server.url, "write a report")
        await server.request(0)
        held = await own_errand.task("paused")
        own_errand.kill_engine()
        process.kill()
        await rest(process)
        await own_errand.run("tasks")  # starts an engine
        again = await own_errand.task("paused")
        assert (again.id, again.activity.retry_at) == (held.id, held.activity.retry_at)
        assert "until " in (await own_errand.run("tasks")).out
        assert len(server.requests) == 1
        done = await own_errand.run("resume", again.id)
    assert done.code == 0, done.err
    assert "Here it is." in done.out


async def test_a_wait_is_said_once_without_a_terminal(errand: Errand) -> None:
    limited = Reply(status=429, error="Too many requests.", headers={"Retry-After": "11"})
    for more in ((), ("--json",)):
        async with ModelServer(replies=[limited, Reply(text="Here it is.")]) as server:
            process = await errand.start("run", *more, *MODEL, server.url, "write a report")
            await server.request(0)
            waiting = await errand.task("paused")
            assert (await errand.run("resume", waiting.id)).code == 0
            out, err = await process.communicate()
        assert process.returncode == 0, err
        assert "Here it is." in out.decode()
        assert err.decode().count("rate limit until ") == 1
        assert err.decode().count("the task continues by itself after that") == 1


async def test_each_short_wait_is_said_once_without_a_terminal(errand: Errand) -> None:
    busy = Reply(status=503, error="Overloaded.", headers={"Retry-After": "1"})
    for more in ((), ("--json",)):
        async with ModelServer(replies=[busy, busy, Reply(text="Here it is.")]) as server:
            done = await errand.run("run", *more, *MODEL, server.url, "write a report")
        assert (done.code, "Here it is." in done.out) == (0, True), done.err
        assert done.err.count("errand: retrying in ") == 2
        assert done.err.count("\n") == 2
