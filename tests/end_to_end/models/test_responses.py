"""Encrypted reasoning of OpenAI's models goes back with the results, and is kept with the conversation."""

from pathlib import Path

import msgspec
import pytest

from errand.protocol.base import JsonObject
from tests.support.command_line import Errand
from tests.support.model_server import ModelServer, ReceivedRequest, Reply

STREAM = Path(__file__).parents[2] / "engine" / "models" / "streams" / "openai_responses_reasoning.sse"
RUN = ("run", "--model", "openai/gpt-5.4", "--thinking", "low", "--approve", "all")


def kinds(request: ReceivedRequest) -> list[str]:
    return [str(item.get("role") or item.get("type")) for item in request.messages]


@pytest.mark.usefixtures("bare_commands")
async def test_reasoning_goes_back_with_the_results_and_in_the_next_engine(own_errand: Errand) -> None:
    replies = [Reply(raw=(STREAM.read_bytes(),)), Reply(text="Both are done."), Reply(text="That was it.")]
    async with ModelServer(replies) as server:
        variables = {"OPENAI_API_KEY": "sk-of-the-test", "OPENAI_BASE_URL": server.url}
        first = await own_errand.run(*RUN, "look around", variables=variables)
        assert first.code == 0 and "Both are done." in first.out, first.err
        task = await own_errand.task("completed")
        own_errand.kill_engine()
        more = ("--conversation", task.conversation_id, "and what was it?")
        second = await own_errand.run(*RUN, *more, variables=variables)
        assert second.code == 0 and "That was it." in second.out, second.err
    work = ["reasoning", "assistant", "function_call", "function_call"]
    results = ["function_call_output", "function_call_output"]
    assert [kinds(request) for request in server.requests] == [
        ["user"],
        ["user", *work, *results],
        ["user", *work, *results, "assistant", "user"],
    ]
    for request in server.requests[1:]:
        assert request.body["store"] is False
        thought = msgspec.convert(request.messages[1], JsonObject)
        assert (thought["id"], thought["encrypted_content"]) == ("rs_1", "gAAAAABpF-9zbM_w==")
