"""Models through litellm: what it leaves open, and what it says of a refusal."""

import gc

import aiohttp
import pytest

from errand.engine.models.catalog.providers import find
from errand.engine.models.endpoint import ModelEndpoint
from errand.engine.models.litellm.model import LiteLLMModel
from errand.engine.models.recovery.driver import RecoveringModel
from errand.engine.models.recovery.source import ModelSource
from tests.engine.models.providers import LIBRARY, ONCE, stored_key
from tests.support.model_replies import final, request_for
from tests.support.model_server import ModelServer, Reply
from tests.support.warm_library import warm_process

pytestmark = pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning")


async def test_closing_leaves_no_connection_of_the_library_open() -> None:
    async with ModelServer(answer=lambda request: Reply(text="Hello.")) as server:
        for _ in range(2):  # the library is used again after it was closed
            process = warm_process()
            provider = LiteLLMModel(ModelEndpoint(LIBRARY, server.url, stored_key), process)
            model = RecoveringModel(ModelSource(provider), ONCE)
            assert (await final(model, request_for("openai/test-model"))).error is None
            await process.close()
    sessions = [thing for thing in gc.get_objects() if isinstance(thing, aiohttp.ClientSession)]
    assert [session for session in sessions if not session.closed] == []


async def test_refusal_is_quoted_as_text_and_not_as_raw_bytes() -> None:
    row = find("gemini")
    assert row is not None
    process = warm_process()
    async with ModelServer() as server:  # the server has no such path
        provider = LiteLLMModel(ModelEndpoint(row, server.url, stored_key), process)
        model = RecoveringModel(ModelSource(provider), ONCE)
        message = await final(model, request_for("gemini/gemini-3.8-flash"))
    await process.close()
    said = "Google Gemini does not know this model or address (404): 404: Not Found. "
    assert message.error == f"{said}Check the model's name and the API base."
