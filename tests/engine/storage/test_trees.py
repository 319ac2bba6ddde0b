"""Trees: forks of a page, the newest branch below a node, and the outline."""

import msgspec

from errand.engine.storage.database import Database
from errand.engine.storage.records import conversations, nodes
from errand.protocol.blocks import TextBlock, ToolCallBlock
from errand.protocol.conversations import Fork, TreeNode
from tests.support.records import NOW, conversation, node


async def grow(database: Database, *links: tuple[str, str | None]) -> None:
    """Nodes with their parents, in the order of storage."""
    database.journal.put(*(nodes.save(node(node_id, parent_id)) for node_id, parent_id in links))
    await database.journal.flush()


async def forks(database: Database, leaf_id: str, limit: int = 50) -> tuple[Fork, ...]:
    page, _ = await database.nodes.branch(leaf_id, limit)
    return await database.trees.forks(page)


async def test_page_lists_forks_and_children_of_its_last_node(database: Database) -> None:
    await grow(database, ("a", None), ("b", "a"), ("c", "b"), ("b2", "a"), ("a2", None), ("c2", "b"))
    of_roots = Fork(parent_id=None, child_ids=("a", "a2"))
    of_a = Fork(parent_id="a", child_ids=("b", "b2"))
    of_b = Fork(parent_id="b", child_ids=("c", "c2"))
    assert await forks(database, "c") == (of_roots, of_a, of_b)
    assert await forks(database, "b") == (of_roots, of_a, of_b)
    assert await forks(database, "c2", 1) == (of_b,)
    assert await forks(database, "a2") == (of_roots,)
    assert await database.trees.forks(()) == ()


async def test_branch_without_forks_reports_only_its_continuation(database: Database) -> None:
    await grow(database, ("a", None), ("b", "a"), ("c", "b"))
    assert await forks(database, "c") == ()
    assert await forks(database, "b") == (Fork(parent_id="b", child_ids=("c",)),)


async def test_the_newest_branch_is_the_one_that_was_written_to_last(database: Database) -> None:
    await grow(database, ("a", None), ("b", "a"), ("b2", "a"), ("c2", "b2"), ("c", "b"), ("a2", None))
    assert await database.trees.newest_leaf("a") == "c"
    assert await database.trees.newest_leaf("b2") == "c2"
    assert await database.trees.newest_leaf("c") == "c"


async def test_outline_omits_internal_nodes_and_reconnects_the_rest(database: Database) -> None:
    message = msgspec.structs.replace(
        node("a"), role="user", blocks=(TextBlock(text="\n  First\n line. "),), task_id="t1"
    )
    called = ToolCallBlock(call_id="1", tool="shell", arguments={})
    calls = msgspec.structs.replace(node("b", "a"), blocks=(TextBlock(text=" "), called, called))
    result = msgspec.structs.replace(node("r", "b"), role="tool_result", author="shell")
    remark = msgspec.structs.replace(node("s", "r"), role="system", author="engine")
    failed = msgspec.structs.replace(node("f", "s", status="failed"), blocks=(), error="No such key.")
    long = node("l", "s", text="word " * 100)
    database.journal.put(*(nodes.save(record) for record in (message, calls, result, remark, failed, long)))
    await database.journal.flush()
    outline = await database.trees.outline("c1")
    a, b, f, last = outline.nodes
    assert outline.nearest == {"a": "a", "b": "b", "r": "b", "s": "b", "f": "f", "l": "l"}
    assert a == TreeNode(
        id="a", parent_id=None, role="user", status="complete", created_at=NOW, text="First line.", task_id="t1"
    )
    assert (b.parent_id, b.text) == ("a", "shell, shell")
    assert (f.parent_id, f.status, f.text) == ("b", "failed", "No such key.")
    assert (last.parent_id, len(last.text), last.text[-2:]) == ("b", 120, "d…")


async def test_nodes_are_found_by_a_part_of_their_id_newest_first(database: Database) -> None:
    result = msgspec.structs.replace(node("one_r", "one_a", text="long"), role="tool_result", author="shell")
    other = msgspec.structs.replace(node("one%"), conversation_id="c2")
    every = (node("one_a", text="Hello\nthere."), result, node("two_b"), other)
    database.journal.put(conversations.save(conversation("c2")), *(nodes.save(record) for record in every))
    await database.journal.flush()
    page = await database.trees.find("one", "c1", 10)
    assert [(record.id, record.conversation_id, record.role, record.text) for record in page.nodes] == [
        ("one_r", "c1", "tool_result", ""),
        ("one_a", "c1", "assistant", "Hello there."),
    ]
    assert (page.nodes[1].created_at, page.has_more) == (NOW, False)
    assert [record.id for record in (await database.trees.find("", None, 10)).nodes] == [
        "one%",
        "two_b",
        "one_r",
        "one_a",
    ]
    assert [record.id for record in (await database.trees.find("%", None, 10)).nodes] == ["one%"]
    assert (await database.trees.find("o", None, 2)).has_more
