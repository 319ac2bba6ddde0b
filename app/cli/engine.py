"""`errand engine --stop`: end the engine that runs. Running one is the engine's own part."""

from app.cli.options import Options
from app.cli.terminal import Terminal
from app.client.shutdown import shut_down
from app.paths import Paths


async def stop_engine(options: Options, paths: Paths, terminal: Terminal) -> int:
    match await shut_down(paths, "errand engine --stop"):
        case "none":
            terminal.line("No engine is running.")
        case "ended":
            terminal.line("The engine has ended.")
        case "killed":
            terminal.line("The engine did not answer: its process was killed. What it had under way can be resumed.")
        case "left":
            terminal.note(
                "errand: The engine does not answer and cannot be killed: it waits for a disk or the network."
            )
            return 1
    return 0
