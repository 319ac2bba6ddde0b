"""Summaries of a crash run: each names its task and the steps that have a result."""

import re
from itertools import pairwise

from errand.engine.agent.history.conversion import NOT_RUN
from errand.protocol.base import JsonObject
from tests.support.model_server import ReceivedRequest, Reply

# The kind of a task and the file that it writes to.
TASK = re.compile(r"\b([a-z]+) (/\S+?\.txt)")
_BEGINNING = "You write the summary"
# What other tasks have done is recalled too.
_DONE = re.compile(r"The task is: [a-z]+ (\S+?\.txt)\s+Done: ((?:step_\d+ ?)*)")
_CALL = re.compile(r"\[calls shell: .*?echo (step_\d+) >>", re.DOTALL)


def summary_of(request: ReceivedRequest) -> Reply | None:
    """The reply to a summary request, slow enough to be killed in."""
    if not str(request.messages[0]["content"]).startswith(_BEGINNING):
        return None
    record = str(request.messages[1]["content"])
    task = TASK.search(record)
    assert task is not None, record
    done = " ".join(sorted(_earlier(record, task[2]) | _with_result(record)))
    return Reply(text=f"The task is: {task[0]}\n\nDone: {done}", piece_delay_s=0.02)


def steps_told(messages: list[JsonObject], file: str) -> set[str]:
    """The steps mentioned by a summary of the task with this file, in a request for the next step."""
    return set[str]().union(
        *(_earlier(str(message["content"]), file) for message in messages if message.get("role") == "user")
    )


def _earlier(text: str, file: str) -> set[str]:
    return {step for of, steps in _DONE.findall(text) if of == file for step in steps.split()}


def _with_result(record: str) -> set[str]:
    parts = re.split(r"^# ", record, flags=re.MULTILINE)
    return {
        call[1]
        for part, after in pairwise(parts)
        if (call := _CALL.search(part)) and after.startswith(("Result of", "Error of")) and NOT_RUN not in after
    }
