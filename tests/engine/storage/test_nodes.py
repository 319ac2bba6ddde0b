"""Nodes: branches of the tree, by page and complete."""

from errand.engine.storage.database import Database
from errand.engine.storage.records import nodes
from errand.protocol.conversations import Node
from tests.support.records import node


async def grow(database: Database, count: int, prefix: str = "n", root: str | None = None) -> tuple[Node, ...]:
    """A branch of this many nodes, from the root on."""
    branch: list[Node] = []
    for number in range(count):
        parent = branch[-1].id if branch else root
        branch.append(node(f"{prefix}{number}", parent, text=f"{prefix} {number}"))
    database.journal.put(*(nodes.save(branch_node) for branch_node in branch))
    await database.journal.flush()
    return tuple(branch)


async def test_path_contains_only_the_branch_of_its_leaf(database: Database) -> None:
    trunk = await grow(database, 5)
    left = await grow(database, 3, "left", "n2")
    right = await grow(database, 2, "right", "n2")
    assert await database.nodes.path("left2") == trunk[:3] + left
    assert await database.nodes.path("right1") == trunk[:3] + right
    assert await database.nodes.path("n4") == trunk


async def test_pages_of_a_branch_add_up_to_the_branch(database: Database) -> None:
    branch = await grow(database, 12)
    seen: tuple[Node, ...] = ()
    before, more = None, True
    while more:
        page, more = await database.nodes.branch("n11", 5, before)
        seen = page + seen
        before = page[0].id
    assert seen == branch


async def test_a_page_that_ends_at_the_root_has_no_more(database: Database) -> None:
    branch = await grow(database, 5)
    assert await database.nodes.branch("n4", 5) == (branch, False)
    assert await database.nodes.branch("n4", 4) == (branch[1:], True)
    assert await database.nodes.branch("n4", 5, "n0") == ((), False)


async def test_unknown_node_gives_nothing(database: Database) -> None:
    assert await database.nodes.get("none") is None
    assert await database.nodes.path("none") == ()
    assert await database.nodes.branch("none") == ((), False)
    assert await database.nodes.branch("none", 5, "none") == ((), False)


async def test_streaming_node_is_replaced_by_its_finished_version_at_the_same_position(database: Database) -> None:
    database.journal.put(nodes.save(node("n0")), nodes.save(node("n1", "n0", text="Hel", status="streaming")))
    await database.journal.flush()
    assert await database.nodes.streaming() == (node("n1", "n0", text="Hel", status="streaming"),)
    database.journal.put(nodes.save(node("n2", "n1")), nodes.save(node("n1", "n0")))
    await database.journal.flush()
    assert await database.nodes.streaming() == ()
    assert await database.nodes.path("n2") == (node("n0"), node("n1", "n0"), node("n2", "n1"))


async def test_nodes_are_read_by_their_ids_up_to_a_number(database: Database) -> None:
    branch = await grow(database, 4)
    _, stored, _ = await database.nodes.after(0, 10)
    assert [stored_node.node for stored_node in stored] == list(branch)
    assert [(await database.nodes.after(0, limit))[2] for limit in (3, 4, 5)] == [True, True, False]
    asked = ("n3", "n2", "n0", "none")
    assert await database.nodes.ids_up_to(stored[2].number, asked) == ["n0", "n2"]
    assert await database.nodes.numbered(asked) == (stored[0], stored[2], stored[3])


async def test_ten_thousand_nodes_in_one_branch_come_back_in_order(database: Database) -> None:
    branch = await grow(database, 10_000)
    assert await database.nodes.path("n9999") == branch


async def test_long_branch_is_read_from_its_end_plus_requested_nodes(database: Database) -> None:
    large = "x" * 1_000_000
    branch = [node(f"n{number}", f"n{number - 1}" if number else None, text=large) for number in range(14)]
    for branch_node in branch:
        database.journal.put(nodes.save(branch_node))
    await grow(database, 2, "other", "n1")
    assert await database.nodes.recent("n13") == tuple(branch[-9:])
    assert await database.nodes.recent("n3") == tuple(branch[:4])
    assert await database.nodes.recent("nowhere") == ()
    assert await database.nodes.on_path("n13", ("n12", "other1", "n1", "nowhere")) == (branch[1], branch[12])


async def test_a_page_of_large_nodes_has_fewer_of_them(database: Database) -> None:
    branch = [node(f"n{n}", f"n{n - 1}" if n else None, text="x" * 3_000_000) for n in range(4)]
    for branch_node in branch:
        database.journal.put(nodes.save(branch_node))
    await database.journal.flush()
    assert await database.nodes.branch("n3", 50) == (tuple(branch[2:]), True)
    assert await database.nodes.branch("n3", 50, "n2") == (tuple(branch[:2]), False)
    assert await database.nodes.path("n3") == tuple(branch)
