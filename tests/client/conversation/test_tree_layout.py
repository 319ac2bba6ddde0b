"""The tree as lines: folded nodes, indentation, the active branch."""

from errand.client.conversation.tree_layout import TreeLine, tree_lines
from errand.protocol.conversations import Role, TreeNode
from tests.support.records import NOW, task


def nodes(*links: tuple[str, str | None, Role]) -> dict[str, TreeNode]:
    """Nodes in the order of storage."""
    return {
        node_id: TreeNode(
            id=node_id, parent_id=parent_id, role=role, status="complete", created_at=NOW, text=node_id, task_id="t1"
        )
        for node_id, parent_id, role in links
    }


def drawn(lines: tuple[TreeLine, ...]) -> list[str]:
    """A text for each line: `|` is a passing lane (`!` if active), `-` leaves it, `*` is active, `@` is the head."""
    return [
        "".join("!" if lane else "|" for lane in line.lanes)
        + ("-" if line.is_side else "")
        + ("@" if line.is_head else "*" if line.is_in_front else "o")
        + line.node_id
        for line in lines
    ]


def test_the_replies_to_a_message_are_folded_into_its_line() -> None:
    tree = nodes(("m1", None, "user"), ("r1", "m1", "assistant"), ("r2", "r1", "assistant"), ("m2", "r2", "user"))
    lines = tree_lines(tree, "m2", {"t1": task()})
    assert drawn(lines) == ["*m1", "@m2"]
    assert [(line.turns, line.count, line.goes_on) for line in lines] == [(2, 0, True), (0, 0, False)]
    assert [line.tasks for line in lines] == [(task(),), ()]


def test_the_newest_branch_continues_the_lane_and_the_others_precede_it() -> None:
    tree = nodes(
        ("m1", None, "user"),
        ("old", "m1", "assistant"),
        ("new", "m1", "assistant"),
        ("m2", "old", "user"),
        ("mid", "m1", "assistant"),
        ("m3", "new", "user"),
    )
    lines = tree_lines(tree, "m2", {})
    assert drawn(lines) == ["*m1", "|-*old", "|@m2", "|-omid", "onew", "om3"]
    assert [(line.number, line.count) for line in lines] == [(0, 0), (1, 3), (0, 0), (3, 3), (2, 3), (0, 0)]
    assert drawn(tree_lines(tree, "m3", {})) == ["*m1", "!-oold", "!om2", "!-omid", "*new", "@m3"]


def test_a_task_is_shown_at_its_first_reply_or_at_its_message_before_that() -> None:
    alone = nodes(("m1", None, "user"))
    assert [line.tasks for line in tree_lines(alone, "m1", {"t1": task()})] == [(task(),)]
    forked = nodes(("m1", None, "user"), ("r1", "m1", "assistant"), ("r2", "m1", "assistant"))
    assert [line.tasks for line in tree_lines(forked, "r2", {"t1": task()})] == [(), (task(),), ()]


def test_first_messages_fork_too() -> None:
    tree = nodes(("a", None, "user"), ("b", None, "user"))
    assert drawn(tree_lines(tree, "b", {})) == ["!-oa", "@b"]


def test_the_head_is_marked_on_the_line_it_is_folded_into() -> None:
    tree = nodes(("m1", None, "user"), ("r1", "m1", "assistant"), ("r2", "r1", "assistant"))
    assert drawn(tree_lines(tree, "r1", {})) == ["@m1"]
    assert drawn(tree_lines(tree, None, {})) == ["om1"]
    assert tree_lines({}, None, {}) == ()
