"""File names that are not text go through a whole task: the policy, the record, the events and the next request."""

import os
from pathlib import Path

from tests.support.command_line import Errand
from tests.support.model_server import Call, ModelServer, Reply

_NAMES = {
    '"caf\\351/new\\nline"': b"caf\xe9/new\nline",
    "./~notes": b"~notes",
    '"a\\342\\200\\213b"': "a\u200bb".encode(),
}


async def test_odd_names_are_listed_and_read_and_the_work_is_shown(own_errand: Errand, workspace: Path) -> None:
    for name in _NAMES.values():
        path = workspace / os.fsdecode(name)
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"content of {len(name)}\n")
    listing = Reply(calls=(Call("code", {"action": "list", "glob": "**"}),))
    reads = [Reply(calls=(Call("code", {"action": "read", "path": name}),)) for name in _NAMES]
    write = Reply(calls=(Call("code", {"action": "write", "path": '"caf\\351/new\\nline"', "content": "x"}),))
    async with ModelServer(replies=[listing, *reads, write, Reply(text="Done.")]) as server:
        done = await own_errand.run(
            "run", "--approve", "all", "--model", "openai_compatible/m", "--api-base", server.url, "look"
        )
        results = [str(request.messages[-1]["content"]) for request in server.requests[1:]]
    assert done.code == 0, done.err
    assert results[0].splitlines() == ['"a\\342\\200\\213b"', '"caf\\351/"', '"caf\\351/new\\nline"', "./~notes"]
    assert results[1:4] == [f"content of {len(name)}" for name in _NAMES.values()]
    assert "rename it first" in results[4]
