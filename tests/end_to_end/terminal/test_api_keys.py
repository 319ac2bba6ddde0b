"""Behaviour 28: keys of the terminal reach a running engine."""

from pathlib import Path

from tests.support.command_line import Errand
from tests.support.model_server import Call, ModelServer, Reply


async def test_a_key_set_after_the_engine_was_started_is_used_and_found_nowhere(
    own_errand: Errand, workspace: Path
) -> None:
    key = "my-secret-0123456789abcdef"  # no provider's format, so no search by format finds it
    await own_errand.run("tasks")
    without = await own_errand.run("run", "greet me")
    replies = [
        Reply(calls=(Call("shell", {"command": "env > seen"}),)),
        Reply(text="Good day."),
        Reply(status=400, error=f"there is something wrong with {key}"),
    ]
    async with ModelServer(replies=replies) as server:
        terminal = {"OPENAI_API_KEY": key, "OPENAI_BASE_URL": server.url}
        done = await own_errand.run("run", "--json", "--approve", "all", "greet me", variables=terminal)
        models = await own_errand.run("models", variables=terminal)
        refused = await own_errand.run("run", "--json", "again", variables=terminal)
        sent = {request.headers["Authorization"] for request in server.requests}
    holding = [file for file in own_errand.home.rglob("*") if file.is_file() and key.encode() in file.read_bytes()]
    assert (without.code, "No model is configured" in without.err) == (2, True)
    assert (done.code, done.lines[-1]["model"]) == (0, "openai/gpt-5.4"), done.err
    assert "key in OPENAI_API_KEY" in models.out
    assert (refused.code, "[key removed]" in refused.out) == (1, True)
    assert sent == {f"Bearer {key}"}
    assert key not in (workspace / "seen").read_text()
    assert holding == []
    assert key not in "".join(run.out + run.err for run in (done, models, refused))
