"""Runs calls that a model wrote as text, where it is clear which tool is meant."""

from collections.abc import Sequence
from dataclasses import replace

from errand.engine.agent.loop.features import Feature
from errand.engine.agent.run.replies.template_calls import template_calls
from errand.engine.agent.run.replies.written_calls import WrittenCall, written_calls
from errand.engine.agent.run.task_context import TaskTools
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.ids import new_id
from errand.engine.core.messages import AssistantMessage, Text, Thinking, ToolCall
from errand.engine.models.base import ModelRequest, ReplyEnd, ToolDefinition
from errand.engine.models.recovery.template_tokens import without_marks
from errand.engine.tools.call_names import meanings


class TextCalls(Feature):
    """Makes calls of a reply that is nothing but calls in text, or ends with them in the tokens of a template.

    What is not clear stays text, and the model is told.
    """

    def __init__(self, tools: TaskTools) -> None:
        self._tools = tools

    async def after_reply(
        self, request: ModelRequest, sent: ModelRequest, end: ReplyEnd, cancel: CancelSignal
    ) -> ReplyEnd:
        reply = end.message
        if reply.tool_calls or reply.stop_reason != "stop" or not request.tools:
            return end
        text = reply.text if end.call_text is None else end.call_text
        preamble, written = "", written_calls(text)
        if not written:
            preamble, written = template_calls(text)
        calls = [self._call(call, request.tools) for call in written]
        clear_calls = tuple(call for call in calls if call is not None)
        if not clear_calls or len(clear_calls) < len(calls):
            return end
        thoughts = tuple(block for block in reply.content if isinstance(block, Thinking))
        new = AssistantMessage((*((Text(preamble),) if preamble else ()), *clear_calls))
        if end.call_text is not None:
            new = without_marks(new)
        return replace(end, message=replace(reply, content=(*thoughts, *new.content), stop_reason="tool_use"))

    def _call(self, written: WrittenCall, offered: Sequence[ToolDefinition]) -> ToolCall | None:
        """Return the call of a registered tool; None if the name may mean none or several."""
        definition = next((tool for tool in offered if tool.name == written.name), None)
        arguments = dict(written.arguments)
        if written.positional:
            required = definition.parameters.get("required") if definition is not None else None
            if not isinstance(required, list) or len(required) != 1 or len(written.positional) != 1 or arguments:
                return None
            arguments[str(required[0])] = written.positional[0]
        call = self._tools.offer.registered(ToolCall(new_id("call"), written.name, arguments))
        names = tuple(tool.name for tool in self._tools.all)
        return call if call.name in names or len(meanings(call.name, names)) == 1 else None
