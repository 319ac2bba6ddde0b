"""Exit codes for the outcome of a task, the error of a command, and the last line of --json."""

import msgspec

from errand.cli.json_lines import flat_task
from errand.client.texts.tasks import is_unfinished
from errand.protocol.base import JsonObject
from errand.protocol.tasks.task import Task
from errand.text.translation import tr

EXIT_CODES_TEXT = tr(
    "Exit codes: 0 completed, 1 error, 2 usage, 3 a limit was reached, 4 ended without being done, 130 stopped."
)
EXIT_ERROR, EXIT_USAGE, EXIT_LIMIT, EXIT_UNFINISHED, EXIT_STOPPED = 1, 2, 3, 4, 130


class CommandError(Exception):
    """A command that failed; the text is for a person, and the process ends with `code`."""

    def __init__(self, text: str, code: int = EXIT_ERROR) -> None:
        super().__init__(text)
        self.code = code


def exit_code(task: Task) -> int:
    match task.outcome.stop_reason:
        case "completed":
            return EXIT_UNFINISHED if is_unfinished(task) else 0
        case "manual_stop":
            return EXIT_STOPPED
        case "iteration_limit" | "time_limit" | "budget_limit" | "token_limit" | "day_limit":
            return EXIT_LIMIT
        case "error" | None:
            return EXIT_ERROR


def json_result(task: Task, code: int) -> str:
    """Return the outcome of a task and what it used."""
    result: JsonObject = {"type": "result", "exitCode": code, "turns": task.progress.step_count, **flat_task(task)}
    return msgspec.json.encode(result).decode()


def json_failure(text: str, code: int) -> str:
    """Return the result line of a command that failed, or that started no task."""
    result: JsonObject = {"type": "result", "exitCode": code, "status": "error", "stopReason": None, "error": text}
    return msgspec.json.encode(result).decode()
