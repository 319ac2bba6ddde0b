"""The tools that control a task: `task_complete`, `ask_user`, `send_update`."""

from collections.abc import Awaitable, Callable

import msgspec

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.messages import TASK_COMPLETE, Text
from errand.engine.tools.answer_schema import SUMMARY, with_answer_schema
from errand.engine.tools.arguments import renamed
from errand.engine.tools.base import Access, ExecutionMode
from errand.engine.tools.results import OnUpdate, ToolError, ToolResult
from errand.protocol.base import JsonObject, JsonValue
from errand.protocol.blocks import CallDisplay

_COMPLETION = CallDisplay(
    kind="other", running="finishing", done="finished", icon="flag", role="completion", content="summary"
)
_QUESTION = CallDisplay(
    kind="other",
    running="asking you",
    done="asked you",
    icon="circle-question-mark",
    role="question",
    content="question",
)
_MESSAGE = CallDisplay(
    kind="other", running="telling you", done="told you", icon="message-square", role="message", content="message"
)

_TASK_COMPLETE: JsonObject = {"type": "object", "properties": {"summary": SUMMARY}, "required": ["summary"]}


class TaskComplete:
    """Ends the task. `completed` is the summary once called; `answer` is set if there is an answer schema."""

    name = TASK_COMPLETE
    label = "Task complete"
    description = "Call this when the task is finished, and only then, with a short summary of what was accomplished."
    parameters: JsonObject = _TASK_COMPLETE
    execution_mode: ExecutionMode = "sequential"

    def __init__(self, answer_schema: JsonObject | None = None) -> None:
        if answer_schema is not None:
            self.parameters = with_answer_schema(answer_schema)
        self.completed: str | None = None
        self.answer: JsonValue = None

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        return arguments

    @staticmethod
    def display(arguments: JsonObject) -> CallDisplay:
        return _COMPLETION

    def access(self, arguments: JsonObject) -> Access:
        return Access("free", "End the task.")

    def allow(self, call_id: str, access: Access) -> None:
        """Does nothing: the call accesses nothing."""

    async def execute(
        self, call_id: str, arguments: JsonObject, cancel: CancelSignal, on_update: OnUpdate
    ) -> ToolResult:
        self.completed = str(arguments["summary"])
        self.answer = arguments.get("answer")
        return ToolResult((Text("The task is complete."),), summary="task complete", terminate=True)


class _Question(msgspec.Struct, frozen=True):
    question: str
    choices: tuple[str, ...] = ()


_ASK_USER: JsonObject = {
    "type": "object",
    "properties": {
        "question": {"type": "string", "description": "One clear question."},
        "choices": {"type": "array", "items": {"type": "string"}, "description": "Possible answers."},
    },
    "required": ["question"],
}


# Clients show a question as a whole, with a button for each choice: 4,000 of them take a window 4 s.
_MAX_QUESTION_LENGTH = 20_000
_MAX_CHOICES = 50
_MAX_CHOICE_LENGTH = 1_000
_TOO_MUCH_TO_ASK = (
    f"A question has at most {_MAX_QUESTION_LENGTH:,} characters, {_MAX_CHOICES} choices, and {_MAX_CHOICE_LENGTH:,} "
    "characters in each. It was not asked. Ask a shorter one, and put what is long into a file."
)


class AskUser:
    """Asks the user a question and returns the answer to the model. `ask` waits; it returns None when cancelled."""

    name = "ask_user"
    label = "Question"
    description = (
        "Ask the person a question and wait for the answer. Use it for what only the person can know or decide. "
        "Give `choices` if there are only a few possible answers."
    )
    execution_mode: ExecutionMode = "sequential"
    parameters = _ASK_USER

    def __init__(self, ask: Callable[[str, tuple[str, ...], str, CancelSignal], Awaitable[str | None]]) -> None:
        self._ask = ask

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        return renamed(arguments, {"options": "choices", "answers": "choices", "prompt": "question"})

    @staticmethod
    def display(arguments: JsonObject) -> CallDisplay:
        return _QUESTION

    def access(self, arguments: JsonObject) -> Access:
        return Access("free", "Ask you a question.")

    def allow(self, call_id: str, access: Access) -> None:
        """Does nothing: the call accesses nothing."""

    async def execute(
        self, call_id: str, arguments: JsonObject, cancel: CancelSignal, on_update: OnUpdate
    ) -> ToolResult:
        question = msgspec.convert(arguments, _Question)
        if _is_too_much(question):
            raise ToolError(_TOO_MUCH_TO_ASK)
        answer = await self._ask(question.question, question.choices, call_id, cancel)
        if answer is None:
            raise ToolError("Operation aborted")
        return ToolResult((Text(answer),), summary="answered")


def _is_too_much(asked: _Question) -> bool:
    longest = max(map(len, asked.choices), default=0)
    return (
        len(asked.question) > _MAX_QUESTION_LENGTH or len(asked.choices) > _MAX_CHOICES or longest > _MAX_CHOICE_LENGTH
    )


_SEND_UPDATE: JsonObject = {
    "type": "object",
    "properties": {"message": {"type": "string", "description": "What was done and what comes next."}},
    "required": ["message"],
}


class SendUpdate:
    """Reports progress. The call itself is displayed, so there is nothing to execute."""

    name = "send_update"
    label = "Update"
    description = "Tell the person about progress without stopping work."
    execution_mode: ExecutionMode = "parallel"
    parameters = _SEND_UPDATE

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        return arguments

    @staticmethod
    def display(arguments: JsonObject) -> CallDisplay:
        return _MESSAGE

    def access(self, arguments: JsonObject) -> Access:
        return Access("free", "Tell you about progress.")

    def allow(self, call_id: str, access: Access) -> None:
        """Does nothing: the call accesses nothing."""

    async def execute(
        self, call_id: str, arguments: JsonObject, cancel: CancelSignal, on_update: OnUpdate
    ) -> ToolResult:
        return ToolResult((Text("Shown to the person."),), summary="shown")
