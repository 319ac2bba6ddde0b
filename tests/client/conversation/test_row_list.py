"""Rows in sections, replaced with minimal changes."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from errand.client.conversation.row_list import RowList
from errand.client.conversation.rows import AskRow, Row
from tests.support.records import ask

SECTIONS = st.lists(st.lists(st.integers(0, 40), max_size=5), max_size=6)


def row(name: str, number: int = 0) -> Row:
    return AskRow(name, ask(f"k{number}"))


@dataclass
class Listener:
    """Mirrors the names by the signals, and counts them."""

    def __post_init__(self) -> None:
        self.list = RowList(self.on_inserted, self.on_changed, self.on_removed)
        self.rows: list[Row] = []
        self.told: list[tuple[str, int, int]] = []

    def on_inserted(self, first: int, count: int) -> None:
        self.rows[first:first] = [self.list[index] for index in range(first, first + count)]
        self.check("inserted", first, count)

    def on_changed(self, index: int) -> None:
        self.rows[index] = self.list[index]
        self.check("changed", index, 1)

    def on_removed(self, first: int, count: int) -> None:
        del self.rows[first : first + count]
        self.check("removed", first, count)

    def check(self, how: str, first: int, count: int) -> None:
        self.told.append((how, first, count))
        assert self.rows == [self.list[index] for index in range(len(self.list))]


def sections_of(numbers: list[list[int]]) -> list[tuple[str, list[Row]]]:
    seen: set[int] = set()
    sections: list[tuple[str, list[Row]]] = []
    for index, section in enumerate(numbers):
        new = [number for number in dict.fromkeys(section) if number not in seen]
        seen.update(new)
        sections.append((str(index), [row(str(number), number % 3) for number in new]))
    return sections


@given(SECTIONS, SECTIONS)
def test_applying_the_signals_reproduces_the_rows(before: list[list[int]], after: list[list[int]]) -> None:
    listener = Listener()
    listener.list.replace(sections_of(before))
    listener.list.replace(sections_of(after))
    assert listener.rows == [entry for _, rows in sections_of(after) for entry in rows]


@given(SECTIONS)
def test_identical_rows_emit_no_change(sections: list[list[int]]) -> None:
    listener = Listener()
    listener.list.replace(sections_of(sections))
    listener.told.clear()
    listener.list.replace(sections_of(sections))
    assert listener.told == []


def test_a_section_is_replaced_in_place() -> None:
    listener = Listener()
    listener.list.replace([("a", [row("1"), row("2")]), ("b", []), ("c", [row("3")])])
    listener.told.clear()
    listener.list.put("b", [row("4"), row("5")])
    listener.list.put("a", [row("1"), row("6"), row("2", 1)])
    listener.list.put("d", [row("7")])
    listener.list.put("c", [])
    assert listener.told == [
        ("inserted", 2, 2),
        ("inserted", 1, 1),
        ("changed", 2, 1),
        ("inserted", 6, 1),
        ("removed", 5, 1),
    ]
    assert [entry.key for entry in listener.rows] == ["1", "6", "2", "4", "5", "7"]


def test_prepended_sections_come_first_and_later_changes_reach_their_rows() -> None:
    listener = Listener()
    listener.list.fill([("b", [row("2")])])
    listener.rows = [listener.list[0]]
    listener.list.prepend([("x", []), ("a", [row("1")])])
    listener.list.put("b", [row("2"), row("3")])
    listener.list.put("a", [row("0"), row("1")])
    assert [entry.key for entry in listener.rows] == ["0", "1", "2", "3"]


@given(SECTIONS, st.data())
def test_only_the_tail_of_a_section_is_replaced(numbers: list[list[int]], data: st.DataObject) -> None:
    listener = Listener()
    sections = sections_of([*numbers, [50]])
    listener.list.replace(sections)
    index = data.draw(st.integers(0, len(sections) - 1))
    name, rows = sections[index]
    first = data.draw(st.integers(0, len(rows)))
    tail = [row(f"{key}", key % 2) for key in data.draw(st.lists(st.integers(60, 62), unique=True))]
    tail = [*(row(entry.key, 9) for entry in rows[first : first + data.draw(st.integers(0, 2))]), *tail]
    listener.list.replace_tail(name, first, tail)
    sections[index] = name, [*rows[:first], *tail]
    assert listener.rows == [entry for _, rows in sections for entry in rows]
    assert [listener.list.index_of(name, 0) for name, rows in sections if rows] == [
        listener.rows.index(rows[0]) for _, rows in sections if rows
    ]


def test_growing_text_changes_one_row_and_adds_new_ones() -> None:
    listener = Listener()
    listener.list.put("a", [row("1"), row("2")])
    listener.told.clear()
    listener.list.replace_tail("a", 1, [row("2", 1), row("3"), row("4")])
    assert listener.told == [("changed", 1, 1), ("inserted", 2, 2)]
