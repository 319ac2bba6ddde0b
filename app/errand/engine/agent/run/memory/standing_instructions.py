"""Proposes to remember what a person says should bind later; the person accepts or declines it."""

import logging

from errand.engine.agent.loop.features import Feature
from errand.engine.agent.run.memory.recall import MemorySource, words_of_people
from errand.engine.agent.run.task_context import TaskContext
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import EngineError
from errand.engine.memory.facts import FactProposals
from errand.engine.memory.standing_instructions import standing_instructions
from errand.engine.models.base import ModelRequest
from errand.protocol.memory import FactScope

_logger = logging.getLogger(__name__)


class StandingInstructions(Feature):
    """The proposals of one task, with the scope `scope`.

    Nothing is proposed of an order to a sub-agent, nor where memory is off. So many messages, `history_length`, were
    there before the task.
    """

    def __init__(
        self,
        context: TaskContext,
        source: MemorySource | None,
        proposals: FactProposals,
        scope: FactScope,
        *,
        history_length: int,
    ) -> None:
        self._task = context.state.task
        self._database = context.database
        self._source = source if not self._task.origin.depth else None
        self._proposals = proposals
        self._scope: FactScope = scope
        self._read = history_length

    async def before_request(self, request: ModelRequest, cancel: CancelSignal) -> ModelRequest:
        new = request.messages[self._read :]
        self._read = max(self._read, len(request.messages))
        instructions = standing_instructions("\n".join(words_of_people(new)))
        if instructions and await self._may_remember():
            for instruction in instructions:
                await self._propose(instruction)
        return request

    async def _may_remember(self) -> bool:
        if self._source is None:
            return False
        conversation = await self._database.conversations.get(self._task.conversation_id)
        return conversation is not None and self._source.remembers(conversation)

    async def _propose(self, instruction: str) -> None:
        try:
            await self._proposals.propose(instruction, self._scope)
        except EngineError as error:  # full, or a secret: the agent has read it all the same
            _logger.info("not proposed to be remembered: %s", error)
