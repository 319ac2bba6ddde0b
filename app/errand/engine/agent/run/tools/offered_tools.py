"""Tells the model of its tools as they are offered to it, also in what the conversation has called so far."""

from collections.abc import Sequence
from dataclasses import replace

from errand.engine.agent.loop.features import Feature
from errand.engine.agent.run.task_context import TaskTools
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.messages import AssistantContent, AssistantMessage, ModelMessage, ToolCall
from errand.engine.models.base import ModelRequest, ReplyEnd
from errand.engine.models.message_cache import MessageCache


class OfferedTools(Feature):
    """Writes earlier calls as this model would have written them, and reads its new ones.

    The last feature before a request: what others see has the names of the registered tools.
    """

    def __init__(self, tools: TaskTools) -> None:
        self._tools = tools
        self._offered: MessageCache[ModelMessage | None] = MessageCache()
        self._names: tuple[str, ...] = ()

    async def before_request(self, request: ModelRequest, cancel: CancelSignal) -> ModelRequest:
        offer = self._tools.offer
        if self._names != offer.names:
            self._names, self._offered = offer.names, MessageCache()
        return replace(
            request,
            messages=self._as_offered(request.messages),
            options=replace(request.options, call_form=offer.call_form, is_small=offer.is_small),
        )

    async def after_reply(
        self, request: ModelRequest, sent: ModelRequest, end: ReplyEnd, cancel: CancelSignal
    ) -> ReplyEnd:
        if not end.message.tool_calls:
            return end
        return replace(end, message=replace(end.message, content=tuple(map(self._registered, end.message.content))))

    def _as_offered(self, messages: Sequence[ModelMessage]) -> tuple[ModelMessage, ...]:
        """Return the same object for the same message, since what is sent for it is cached."""
        offered = self._offered.get_each(messages, self._call_as_offered)
        return tuple([new or message for new, message in zip(offered, messages, strict=True)])

    def _call_as_offered(self, message: ModelMessage) -> ModelMessage | None:
        """Return None for a message without a call: a cached value must not hold its key."""
        if not isinstance(message, AssistantMessage) or not message.tool_calls:
            return None
        offer = self._tools.offer
        content = (offer.offered(block) if isinstance(block, ToolCall) else block for block in message.content)
        return replace(message, content=tuple(content))

    def _registered(self, block: AssistantContent) -> AssistantContent:
        return self._tools.offer.registered(block) if isinstance(block, ToolCall) else block
