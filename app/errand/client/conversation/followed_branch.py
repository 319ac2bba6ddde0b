"""The branch of the selected agent while events arrive: which of them continue it, and which leave it."""

from errand.client.conversation.agents import ConversationAgents
from errand.client.conversation.branch import LoadedBranch
from errand.client.conversation.task_states import KnownTasks, is_working
from errand.protocol.agents import Agent
from errand.protocol.conversations import Node
from errand.protocol.engine import Snapshot


class FollowedBranch:
    """Decides about events for a loaded branch; it changes the branch and the agents by a snapshot only."""

    def __init__(self, branch: LoadedBranch, agents: ConversationAgents, tasks: KnownTasks) -> None:
        self._branch = branch
        self._agents = agents
        self._tasks = tasks

    def put_snapshot(self, snapshot: Snapshot) -> None:
        """Store the tasks, asks and agents of a snapshot; its nodes are for `LoadedBranch.show`."""
        for task in snapshot.tasks:
            self._branch.put_task(task)
        for ask in snapshot.asks:
            self._branch.asks.put(ask)
        self._agents.put_all(snapshot.agents)

    def continues(self, node: Node) -> bool:
        """Return True if new nodes at the end extend this branch.

        Those of agents taking turns do, those of a side-branch agent do not.
        """
        task, agent = self._tasks.get(node.task_id or ""), self._agents.shown
        if task is None or agent is None or task.agent_id == agent.id:
            return True
        writer, own = self._agents.get(task.agent_id), self._tasks.of_agent(agent.id)
        return writer is not None and writer.beside is None and (own is None or not is_working(own))

    def is_left_by_node(self, node: Node) -> bool:
        """Return True if the selected agent wrote a node on another branch: a retried reply, or a lost race."""
        task, agent = self._tasks.get(node.task_id or ""), self._agents.shown
        is_ours = task is not None and agent is not None and task.agent_id == agent.id
        return is_ours and task is not None and is_working(task) and not self._branch.holds(node.id)

    def is_left_by_head(self, agent: Agent, before: Agent | None) -> bool:
        """Return True if the selected agent's head moved to a node that is not loaded, or back."""
        if agent != self._agents.shown or agent.head_id is None:
            return False
        before_id = before.head_id if before is not None else None
        return not self._branch.holds(agent.head_id) or self._branch.is_behind(agent.head_id, before_id)
