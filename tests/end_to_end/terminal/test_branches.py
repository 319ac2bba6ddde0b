"""The branches of a conversation in the terminal: drawn, added to by an edit, a retry and a fork, and gone to."""

import re

from tests.support.command_line import Errand
from tests.support.model_server import ModelServer, ReceivedRequest, Reply

MODEL = ("--model", "openai_compatible/test-model", "--api-base")


def drawn(out: str) -> list[str]:
    """The lines of a tree without ids."""
    return [re.sub("^[0-9a-f]{8}  ", "", line) for line in out.splitlines()]


def id_of(out: str, text: str) -> str:
    return next(line[:8] for line in out.splitlines() if text in line)


async def test_branches_are_made_drawn_and_gone_to(errand: Errand) -> None:
    replies = 0

    def answer(request: ReceivedRequest) -> Reply:
        nonlocal replies
        replies += 1
        return Reply(text=f"Reply {replies} to {request.messages[-1]['content']}")

    async with ModelServer(answer=answer) as server:
        model = (*MODEL, server.url)
        assert (await errand.run("run", *model, "plant a birch")).code == 0
        edited = await errand.run("edit", "plant a birch", *model, "plant an oak")
        assert "Reply 2 to plant an oak\n" in edited.out and edited.code == 0
        assert (await errand.run("retry", "plant a birch")).code == 0
        tree = (await errand.run("tree", "plant a birch")).out
        assert drawn(tree) == [
            "├ you: plant a birch",
            "│ Assistant: Reply 1 to plant a birch",
            "└ you: plant an oak",
            "  ├ Assistant: Reply 2 to plant an oak",
            "  └ Assistant: Reply 3 to plant an oak  ← Assistant",
        ]
        moved = await errand.run("move", "plant a birch", id_of(tree, "you: plant a birch"))
        assert moved.out == f"Assistant is now at {id_of(tree, 'Reply 1')}, the end of that branch.\n"
        forked = await errand.run("fork", "plant a birch", "--at", id_of(tree, "Reply 2"))
        assert forked.out.startswith(f"The next message continues after {id_of(tree, 'Reply 2')}: errand run ")
        assert (await errand.run("fork", "plant a birch", "--at", id_of(tree, "Reply 1"), *model, "water it")).code == 0
    output = (await errand.run("show", "plant a birch")).out
    texts = [line for line in output.splitlines() if line.startswith((">", "Reply"))]
    assert texts == ["> plant a birch", "Reply 1 to plant a birch", "> water it", "Reply 4 to water it"]
    other = (await errand.run("show", "plant a birch", "--branch", id_of(tree, "Reply 3"))).out
    assert "> plant an oak\n\nAssistant · " in other and "Reply 3 to plant an oak\n" in other

    ends = (id_of(tree, "Reply 1"), id_of(tree, "Reply 3"))
    sides, named = await errand.run("compare", *ends), await errand.run("compare", "plant a birch", *ends)
    assert (sides.code, sides.out) == (0, named.out)
    assert "Reply 1 to plant a birch" in sides.out and "Reply 3 to plant an oak" in sides.out

    reply = await errand.run("edit", "plant a birch", "--at", id_of(tree, "Reply 2"), "new")
    assert reply.code == 2 and "Only your own messages can be edited." in reply.err
    unknown = await errand.run("move", "plant a birch", "nothing")
    assert unknown.code == 2 and "No message in this conversation has the id 'nothing'." in unknown.err
