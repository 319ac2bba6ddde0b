"""The line that offers the embedding model, once, after a task whose search in memory had to do without it."""

import os
from contextlib import suppress

from errand.cli.output import CommandOutput
from errand.client.connection import Connection
from errand.client.errors import CallError, ConnectionLost
from errand.client.texts.embedding_model import offer_text
from errand.protocol.memory import MEMORY_MODEL, MEMORY_STATS, MemoryModelParams, MemoryStatsParams
from errand.text.translation import tr


async def offer_embedding_model(connection: Connection, output: CommandOutput) -> None:
    """Print the line if the engine offers the model, and have it offered no more; never where nobody reads it."""
    if not output.interactive or os.environ.get("CI"):
        return
    with suppress(CallError, ConnectionLost):
        model = (await connection.call(MEMORY_STATS, MemoryStatsParams())).model
        if model.is_offered:
            output.note(f"{offer_text(model)} {tr('To get it: errand memory download')}")
            await connection.call(MEMORY_MODEL, MemoryModelParams(action="decline"))
