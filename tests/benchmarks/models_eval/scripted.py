"""A model that solves every task of the evaluation by script: what it does not solve, the harness has broken."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager

from tests.benchmarks.models_eval.model import EvaluatedModel
from tests.benchmarks.models_eval.task import EvalTask, Step
from tests.support.model_server import Call, ModelServer, ReceivedRequest, Reply

SCRIPTED_MODEL = "openai_compatible/test-model"
# Names under which a tool may be offered, and of the arguments that are named otherwise there.
_OTHER_NAMES = {"shell": ("bash",), "todo": ("todo_write",)}


class ScriptedModel:
    """Replies with the solution of the task that `begin` was called with, a call in each turn, then with its answer."""

    def __init__(self) -> None:
        self._replies: Iterator[Step | str] = iter(())

    def begin(self, task: EvalTask, *, solves: bool = True) -> None:
        """Take the next requests as those of this task. Without `solves`, do what is wrong and claim it is right."""
        replies = _right(task) if solves else _wrong(task)
        self._replies = iter(replies)

    def reply(self, request: ReceivedRequest) -> Reply:
        step = next(self._replies, "The script has no further reply.")
        if isinstance(step, str):
            return Reply(text=step)
        names = (step.tool, *_OTHER_NAMES.get(step.tool, ()))
        tool = next((name for name in names if name in request.offered), step.tool)
        return Reply(calls=(Call(tool, step.arguments),))


def _right(task: EvalTask) -> Iterator[Step | str]:
    for steps in task.solution:
        yield from steps
        if not steps or steps[-1].tool != "task_complete":
            yield task.answer


def _wrong(task: EvalTask) -> Iterator[Step | str]:
    for _ in task.messages:
        if task.wrong:
            yield Step("shell", {"command": task.wrong})
        yield task.wrong_answer


@asynccontextmanager
async def scripted_model() -> AsyncGenerator[tuple[ScriptedModel, EvaluatedModel]]:
    """Serve the scripted model on this machine."""
    script = ScriptedModel()
    async with ModelServer(answer=script.reply) as server:
        yield script, EvaluatedModel(SCRIPTED_MODEL, server.url)
