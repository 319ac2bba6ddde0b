"""The tasks of the soak test: a number in the prompt selects a plan, and all plans together use every tool."""

from collections.abc import Callable

from errand.protocol.base import JsonObject
from tests.support.model_server import Call, ReceivedRequest, Reply

# Long enough that twenty tasks always run, short enough for thousands per hour.
_THINKING_S = 0.3
_PIECE_S = 0.004

_Step = Callable[[str], Reply]


def prompt(number: int) -> str:
    return f"soak-{number}"


def answer(request: ReceivedRequest) -> Reply:
    """The reply of this turn, by the task's number; every eighth task is a long one that may be stopped."""
    prompts = [str(message["content"]) for message in request.messages if message.get("role") == "user"]
    number = int(next(text for text in prompts if "soak-" in text).partition("soak-")[2].split()[0])
    steps = _PLANS[number % len(_PLANS)]
    return steps[request.turn](f"{number}-{request.turn}") if request.turn < len(steps) else _done(str(number))


def _reply(key: str, tool: str, arguments: JsonObject, text: str = "I go on. ") -> Reply:
    call = Call(tool, arguments, id=f"call_{key}")
    return Reply(text=text * 12, calls=(call,), piece_length=12, piece_delay_s=_PIECE_S, delay_s=_THINKING_S)


def _write(key: str) -> Reply:
    content = f"note {key}\n" * 40
    return _reply(key, "code", {"action": "write", "path": f"notes/{key}.txt", "content": content})


def _read(key: str) -> Reply:
    return _reply(key, "code", {"action": "read", "path": "shared.txt"})


def _search(key: str) -> Reply:
    return _reply(key, "code", {"action": "search", "pattern": "needle", "path": "."})


def _edit(key: str) -> Reply:
    """An edit of a missing file: tools fail too."""
    return _reply(key, "code", {"action": "edit", "path": f"no/{key}.txt", "old": "a", "new": "b"})


def _shell(key: str) -> Reply:
    return _reply(key, "shell", {"command": "for i in $(seq 200); do echo line $i; done"})


def _long_shell(key: str) -> Reply:
    return _reply(key, "shell", {"command": "sleep 3 & sleep 2; echo slept"})


def _ask(key: str) -> Reply:
    return _reply(key, "ask_user", {"question": "Which?", "choices": ["this", "that"]})


def _update(key: str) -> Reply:
    return _reply(key, "send_update", {"message": f"at {key}"})


def _done(key: str) -> Reply:
    return _reply(key, "task_complete", {"summary": f"did {key}"})


_PLANS: tuple[tuple[_Step, ...], ...] = (
    (_read, _write, _shell),
    (_shell, _search, _update),
    (_ask, _write, _read),
    (_update, _edit, _shell, _read),
    (_shell, _shell),
    (_write, _ask, _search),
    (_read, _search, _update),
    (_update, _long_shell, _long_shell),
)
LONG = len(_PLANS) - 1
PLANS = len(_PLANS)
