"""The tasks of a crash run: a model that has each step append a line, also after the engine was killed."""

import re

import msgspec

from errand.engine.agent.history.conversion import NOT_RUN
from errand.protocol.base import JsonObject
from tests.crash.summary_replies import TASK, steps_told, summary_of
from tests.support.model_replies import DONE
from tests.support.model_server import Call, ReceivedRequest, Reply

STEPS = 4
# The context window in tokens: the results of a `long` task exceed it.
WINDOW = 6_000
# The kinds of tasks, in turn: plain, two calls in a reply, one that asks, one whose commands need approval, slow, one
# whose model is rate limited for an hour at each step, one that has to be summarised.
KINDS = ("plain", "pairs", "asks", "approved", "slow", "limited", "long")
_HOUR = Reply(status=429, error="slow down", headers={"Retry-After": "3600"})
_NAMES = {"ask_user": "asked", "task_complete": "completed"}
_STEP = re.compile(r"echo (step_\d+) >>")


class _Function(msgspec.Struct):
    name: str
    arguments: str


class _Sent(msgspec.Struct):
    """A call as it appears in a request."""

    id: str
    function: _Function


def prompt(kind: str, file: str) -> str:
    return f"{kind} {file}"


class Work:
    """Answers for the model. `refused` are steps that were refused once and succeed the next time."""

    def __init__(self) -> None:
        self.refused: set[tuple[str, int]] = set()

    def answer(self, request: ReceivedRequest) -> Reply:
        reply = summary_of(request) or self._next_step(request)
        return msgspec.structs.replace(reply, usage=(len(str(request.body)) // 4, 20))

    def _next_step(self, request: ReceivedRequest) -> Reply:
        """The first step without a result, as far as the model can tell from its request."""
        kind, file = _task(request)
        done = _done(request.messages, file)
        left = [step for step in range(1, STEPS + 1) if f"step_{step}" not in done]
        if not left:
            return DONE
        if kind == "asks" and left[0] == 3 and "asked" not in done:
            return Reply(calls=(Call("ask_user", {"question": "Go on?", "choices": ["Yes"]}, id="asked"),))
        if kind == "limited" and (file, left[0]) not in self.refused:
            self.refused.add((file, left[0]))
            return _HOUR
        steps = left[:2] if kind == "pairs" else left[:1]
        calls = tuple(Call("shell", {"command": _command(step, file, kind)}, id=f"step_{step}") for step in steps)
        return Reply(text="I write the next line. " * 4, calls=calls, piece_delay_s=0.002)


def step_of(command: str) -> str:
    """The step that a command does."""
    match = _STEP.search(command)
    assert match is not None, command
    return match.group(1)


def _command(step: int, file: str, kind: str) -> str:
    after = {"slow": "; sleep 0.1", "long": "; head -c 6500 /dev/zero | tr '\\0' x"}
    return f"echo step_{step} >> {file}{after.get(kind, '')}"


def _task(request: ReceivedRequest) -> tuple[str, str]:
    """The task's first message, or what a summary says about it."""
    first_message = next(message["content"] for message in request.messages if message.get("role") == "user")
    match = TASK.search(str(first_message).rpartition("</recalled>")[2])  # other tasks may be recalled before it
    assert match is not None, first_message
    return match[1], match[2]


def _done(messages: list[JsonObject], file: str) -> set[str]:
    """The steps whose calls have a result, and `asked`; calls of a cut reply never ran.

    Identified by the command: a repeated call id is sent as another one.
    """
    called: dict[str, str] = {}
    done = steps_told(messages, file)
    for message in messages:
        for call in msgspec.convert(message.get("tool_calls") or [], list[_Sent]):
            match = _STEP.search(call.function.arguments)  # none in a reply that was cut within its arguments
            called[call.id] = match.group(1) if match else _NAMES.get(call.function.name, "cut")
        if message.get("role") == "tool" and message.get("content") != NOT_RUN:
            done.add(called[str(message.get("tool_call_id"))])
    return done
