"""The agents of conversations, and where each of them stands."""

from app.engine.agent.branch import Branch
from app.engine.agent.claims import Claims
from app.engine.broadcast import EventLog
from app.engine.errors import NotFound
from app.engine.storage.database import Database
from app.protocol.agents import Agent, AgentSetHeadParams


class Roster:
    def __init__(self, log: EventLog, database: Database, claims: Claims) -> None:
        self._log = log
        self._database = database
        self._claims = claims

    async def get(self, agent_id: str) -> Agent:
        agent = await self._database.agents.get(agent_id)
        if agent is None:
            raise NotFound(f"There is no agent {agent_id!r}.")
        return agent

    async def set_head(self, params: AgentSetHeadParams) -> Agent:
        """Move an idle agent within its conversation; refused while its task runs, or if it has moved meanwhile.

        With `to_leaf` it goes to the end of the branch below the node that was written to last.
        """
        agent = await self.get(params.agent_id)
        node = await self._database.nodes.get(params.node_id)
        if node is None or node.conversation_id != agent.conversation_id:
            raise NotFound(f"There is no node {params.node_id!r} in the agent's conversation.")
        self._claims.claim(agent)
        try:
            branch = Branch(await self._claims.newest(agent), self._log)
            target = await self._database.trees.newest_leaf(node.id) if params.to_leaf else node.id
            branch.set_head(target, params.version)
            await self._log.flush()
        finally:
            self._claims.release(agent.id)
        return branch.agent
