"""`errand engine --stop`: end the engine that runs. Running one is the engine's own part."""

from app.cli.options import Options
from app.cli.terminal import Terminal
from app.client.errors import ConnectionLost, NoEngine
from app.client.launch import connect
from app.paths import Paths
from app.protocol.engine import EngineShutdownParams
from app.protocol.wire import ENGINE_SHUTDOWN


async def stop_engine(options: Options, paths: Paths, terminal: Terminal) -> int:
    try:
        connection = await connect(paths, "errand engine --stop", start=False)
    except NoEngine:
        terminal.line("No engine is running.")
        return 0
    try:
        await connection.call(ENGINE_SHUTDOWN, EngineShutdownParams())
    except ConnectionLost:
        pass  # it ended before it could say so
    finally:
        await connection.close()
    terminal.line("The engine has ended.")
    return 0
