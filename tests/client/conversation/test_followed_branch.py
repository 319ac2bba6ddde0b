"""Which nodes and heads continue the branch of the selected agent, and which leave it."""

from msgspec.structs import replace

from errand.client.conversation.agents import AgentListeners, ConversationAgents
from errand.client.conversation.branch import LoadedBranch
from errand.client.conversation.followed_branch import FollowedBranch
from errand.protocol.conversations import Node
from errand.protocol.tasks.task import Task
from tests.support.records import agent, node, task


class _Tasks:
    """The tasks of agents, each with one."""

    def __init__(self, *tasks: Task) -> None:
        self._tasks = tasks

    def get(self, task_id: str) -> Task | None:
        return next((task for task in self._tasks if task.id == task_id), None)

    def of_agent(self, agent_id: str) -> Task | None:
        return next((task for task in self._tasks if task.agent_id == agent_id), None)


def _branch(*nodes: Node) -> LoadedBranch:
    branch = LoadedBranch()
    branch.show(nodes, False, ())
    return branch


def _agents() -> ConversationAgents:
    agents = ConversationAgents(AgentListeners(lambda: None, lambda: None))
    agents.put_all((agent("a1"), replace(agent("a2"), beside="a1"), agent("a3")))
    return agents


def _written(node_id: str, task_id: str) -> Node:
    return replace(node(node_id, parent_id="n1"), task_id=task_id)


def test_an_agent_of_the_same_turn_continues_the_branch_and_one_beside_it_does_not() -> None:
    tasks = _Tasks(replace(task("t2"), agent_id="a2"), replace(task("t3"), agent_id="a3"))
    followed = FollowedBranch(_branch(node("n1", parent_id=None)), _agents(), tasks)
    assert not followed.continues(_written("n2", "t2"))
    assert followed.continues(_written("n3", "t3"))


def test_no_other_agent_continues_the_branch_while_the_selected_one_works() -> None:
    tasks = _Tasks(task("t1"), replace(task("t3"), agent_id="a3"))
    followed = FollowedBranch(_branch(node("n1", parent_id=None)), _agents(), tasks)
    assert followed.continues(_written("n2", "t1"))
    assert not followed.continues(_written("n3", "t3"))


def test_a_node_of_the_selected_agent_that_is_not_shown_leaves_the_branch() -> None:
    visible_node = _written("n2", "t1")
    followed = FollowedBranch(_branch(node("n1", parent_id=None), visible_node), _agents(), _Tasks(task("t1")))
    assert not followed.is_left_by_node(visible_node)
    assert followed.is_left_by_node(_written("n9", "t1"))


def test_a_head_that_moves_forward_stays_and_one_that_moves_away_or_back_leaves() -> None:
    agents = _agents()
    branch = _branch(node("n1", parent_id=None), node("n2", parent_id="n1"), node("n3", parent_id="n2"))
    followed = FollowedBranch(branch, agents, _Tasks())
    results: list[bool] = []
    for version, head_id in enumerate(("n2", "n3", "n1", "n9"), start=1):
        before, moved = agents.get("a1"), replace(agent("a1"), head_id=head_id, version=version)
        agents.put(moved)
        results.append(followed.is_left_by_head(moved, before))
    assert results == [True, False, True, True]
