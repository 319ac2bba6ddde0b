"""A call is sent once per connection: one made while connecting is not sent again by the reconnection."""

from errand.client.connection import Connection
from errand.protocol.settings import MODEL_TEST, ModelTestParams
from tests.support.engine_server import EngineServer
from tests.support.model_server import ModelServer, Reply


async def test_call_made_right_after_connecting_is_sent_once(engine: EngineServer) -> None:
    async with ModelServer(answer=lambda request: Reply(text="OK")) as server:
        engine.services.keys.add_environment({"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": server.url})
        connection = Connection(engine.endpoint, "test")
        await connection.open()
        first = await connection.call(MODEL_TEST, ModelTestParams(provider="openai"))
        second = await connection.call(MODEL_TEST, ModelTestParams(provider="openai"))
        await connection.close()
        assert (first.ok, second.ok, len(server.requests)) == (True, True, 2)
