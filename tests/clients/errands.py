"""The tasks of the crowd: a prompt lists steps, and the model server answers each turn with the next one."""

from random import Random

from tests.support.model_server import Call, ReceivedRequest, Reply

# The possible steps of a turn, and their frequency.
_STEPS = ("say", "say", "update", "update", "ask", "run", "long")
_MAX_STEPS = 5


def plan(random: Random, number: int) -> str:
    """The prompt of a task."""
    return " ".join((f"task-{number}", *random.choices(_STEPS, k=random.randint(1, _MAX_STEPS))))


def answer(request: ReceivedRequest) -> Reply:
    """The reply of this turn, by the first prompt."""
    prompts = [str(message["content"]) for message in request.messages if message.get("role") == "user"]
    own = [prompt.rpartition("</recalled>")[2] for prompt in prompts]  # others' prompts may be recalled before it
    first = next(prompt for prompt in own if "task-" in prompt).partition("task-")[2]
    steps = first.partition("\n\n")[0].split()[1:]
    return _reply(steps[request.turn] if request.turn < len(steps) else "done", request.turn)


def _reply(step: str, turn: int) -> Reply:
    match step:
        case "say":
            return Reply(text="word " * 60, piece_length=5, piece_delay_s=0.001, calls=(_call("send_update", turn),))
        case "long":
            return Reply(text="x" * 40_000, piece_length=4000, calls=(_call("send_update", turn),))
        case "update":
            return Reply(calls=(_call("send_update", turn),))
        case "ask":
            return Reply(calls=(Call("ask_user", {"question": "Which?"}, id=f"call_{turn}"),))
        case "run":
            return Reply(calls=(Call("shell", {"command": f"echo {turn}"}, id=f"call_{turn}"),))
        case _:
            return Reply(text="Done.", calls=(Call("task_complete", {"summary": "done"}, id=f"call_{turn}"),))


def _call(tool: str, turn: int) -> Call:
    return Call(tool, {"message": f"turn {turn}"}, id=f"call_{turn}")
