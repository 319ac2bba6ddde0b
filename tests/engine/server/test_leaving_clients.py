"""A client that leaves is forgotten, whatever it has left unread."""

import asyncio
from dataclasses import replace

from errand.engine.server.outbox import MessageKind, Outbox
from errand.engine.server.websocket_server import Server, bind_loopback
from errand.protocol.events import ConversationUpdate, TaskMessage
from tests.support.connections import raw_client
from tests.support.engine_server import EngineServer
from tests.support.limits import WAIT_LIMIT_S
from tests.support.processes import until
from tests.support.records import conversation, node


async def test_client_that_leaves_while_its_answers_fill_the_queue_is_forgotten(engine: EngineServer) -> None:
    engine.log.publish(ConversationUpdate(conversation=conversation()))
    for number in range(50):
        parent = f"n{number - 1}" if number else None
        engine.log.publish(TaskMessage(node=node(f"n{number}", parent, text="x" * 100_000)))
    await engine.log.flush()
    queue = Outbox()
    all_free = queue.free_messages
    server = Server(engine.services, engine.token, bind_loopback(0), outbox=lambda: queue)
    await server.start()

    async with raw_client(replace(engine, server=server)) as client:
        client.socket.transport.pause_reading()
        for number in range(16):  # 80 MB: more than the system holds for the socket
            await client.request("conversation/nodes", number, conversationId="c1", leafId="n49", limit=50)
        await until(lambda: queue.free_messages < all_free - 5)
        await client.request("conversation/list", "one more")  # its reader waits for room from here on
        client.socket.transport.abort()
        await until(lambda: engine.log.client_count == 0)
    await server.close()


async def test_closed_queue_has_room_and_drops_what_is_put() -> None:
    queue = Outbox(most_messages=1)
    queue.put(MessageKind.REPLY, b"one")
    waiting = asyncio.gather(queue.room(), queue.emptied())
    await asyncio.sleep(0)
    queue.close()
    async with asyncio.timeout(WAIT_LIMIT_S):
        await waiting
    assert queue.put(MessageKind.EVENT, b"two")
    assert queue.free_messages == 1
