"""The tree of a conversation as lines."""

from datetime import UTC, datetime

import msgspec

from errand.cli.rendering.tree import tree_lines
from errand.cli.terminal.style import PLAIN, Style
from errand.protocol.conversations import ConversationTreeResult, Role, TreeHead, TreeNode
from tests.support.protocol_events import task

START = datetime(2026, 11, 1, tzinfo=UTC)


def node(name: str, parent: str | None, role: Role = "assistant", *, task_id: str = "task_1") -> TreeNode:
    return TreeNode(
        id=f"node_{name:0>8}",
        parent_id=parent and f"node_{parent:0>8}",
        role=role,
        status="complete",
        created_at=START,
        text=f"text {name}",
        task_id=task_id,
    )


def drawn(*nodes: TreeNode, heads: tuple[TreeHead, ...] = (), style: Style = PLAIN) -> list[str]:
    branches = ConversationTreeResult(nodes=nodes, agents=(), tasks=(), heads=heads)
    return [line[10:] for line in tree_lines(branches, style, 80)]


def test_replies_of_a_task_are_one_line_as_long_as_nothing_branches_off() -> None:
    line = (node("1", None, "user"), node("2", "1"), node("3", "2"), node("4", "3"))
    assert drawn(*line) == ["you: text 1", "agent: text 4  3 turns"]
    assert drawn(*line, node("5", "3", "user")) == [
        "you: text 1",
        "agent: text 3  2 turns",
        "├ agent: text 4",
        "└ you: text 5",
    ]


def test_a_reply_that_only_completes_its_task_is_shown_by_the_summary() -> None:
    end = msgspec.structs.replace(node("2", "1"), text="task_complete")
    ended = task("completed", stop_reason="completed", summary="All tests pass.")
    branches = ConversationTreeResult(nodes=(node("1", None, "user"), end), agents=(), tasks=(ended,))
    assert [line[10:] for line in tree_lines(branches, PLAIN, 80)] == ["you: text 1", "agent: All tests pass."]


def test_lanes_of_branches_are_drawn_to_their_ends_also_without_unicode() -> None:
    nodes = (node("1", None, "user"), node("2", "1"), node("3", "1", task_id="task_2"), node("4", "2", "user"))
    assert drawn(*nodes) == ["you: text 1", "├ agent: text 2", "│ you: text 4", "└ agent: text 3"]
    plain = Style(colour=False, unicode=False)
    assert drawn(*nodes, style=plain) == ["you: text 1", "+ agent: text 2", "| you: text 4", "` agent: text 3"]


def test_a_thousand_forks_do_not_push_the_text_away() -> None:
    nodes = [node("0", None, "user", task_id="")]
    for number in range(1, 1000):
        nodes += [node(f"{number}", f"{number - 1}"), node(f"{number}a", f"{number - 1}", "user")]
    lines = drawn(*nodes)
    assert len(lines) == len(nodes)
    assert max(map(len, lines)) < 60
