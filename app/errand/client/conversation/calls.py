"""The form in which clients show a tool call."""

from typing import Literal, TypeAlias

from errand.protocol.blocks import ToolCallBlock, ToolResultBlock

# `text`: what the agent says with it; `question`: an ask shows it; `hidden`: the end of the task shows it.
CallForm: TypeAlias = Literal["call", "text", "question", "hidden"]


def call_form(call: ToolCallBlock | None, result: ToolResultBlock | None) -> CallForm:
    """Return the form of a call, whose result may have to come; `call` is None if only its result is known."""
    was_refused = result is not None and result.is_error
    match call.display.role if call is not None else "call":
        case "question":
            return "question"
        case "completion" if not was_refused:
            return "hidden"
        case "message" if call is not None and not was_refused:
            return "text" if isinstance(call.arguments.get(call.display.content), str) else "call"
        case _:
            return "call"
