"""Commands of a task in the sandbox, turned on by the setting."""

from pathlib import Path

import msgspec

from tests.support.command_line import Errand
from tests.support.model_server import Call, ModelServer, Reply


async def test_a_command_can_neither_read_the_token_of_the_engine_nor_write_outside_its_workspace(
    own_errand: Errand, workspace: Path
) -> None:
    own_errand.home.mkdir(mode=0o700, exist_ok=True)
    (own_errand.home / "settings.json").write_text(msgspec.json.encode({"command_sandbox": True}).decode())
    outside = workspace.parent / "outside.txt"
    # The variable hides from the policy, which would deny it, where the command looks.
    command = (
        f"home={own_errand.home}; echo made > made.txt; ls -A $home; echo x > {outside}; ls /proc | grep -c '^[0-9]'"
    )
    replies = [Reply(calls=(Call("shell", {"command": command}),)), Reply(text="Done.")]
    async with ModelServer(replies=replies) as server:
        model = ("--model", "openai_compatible/m", "--api-base", server.url)
        done = await own_errand.run("run", "--approve", "all", *model, "look")
        output = str(server.requests[1].body["messages"])
    assert done.code == 0, done.err
    assert (workspace / "made.txt").read_text() == "made\n"
    assert not outside.exists()
    assert "engine.json" not in output
    assert "errand.db" not in output
    assert (own_errand.home / "run" / "engine.json").exists()
