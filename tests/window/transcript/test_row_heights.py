"""Row heights compared with a plain list that is summed each time."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from errand.window.transcript.layout import RowHeights

_SIZES = st.lists(st.integers(1, 400), max_size=60)


def _agree(heights: RowHeights, plain: Sequence[int]) -> None:
    assert [heights[index] for index in range(len(heights))] == plain
    assert [heights.offset_of(index) for index in range(len(plain) + 1)] == [
        sum(plain[:index]) for index in range(len(plain) + 1)
    ]
    assert heights.total == sum(plain)


@given(_SIZES, st.data())
def test_offsets_stay_correct_through_every_kind_of_change(sizes: list[int], data: st.DataObject) -> None:
    heights, plain = RowHeights(), list(sizes)
    heights.reset(sizes)
    for _ in range(4):
        first = data.draw(st.integers(0, len(plain)))
        more = data.draw(st.lists(st.integers(1, 400), max_size=10))
        heights.insert(first, more)
        plain[first:first] = more
        _agree(heights, plain)
        heights.insert(len(plain), more)
        plain += more
        _agree(heights, plain)
        if plain:
            index = data.draw(st.integers(0, len(plain) - 1))
            plain[index] = data.draw(st.integers(1, 400))
            heights.measure(index, plain[index])
            assert heights.is_measured(index)
            _agree(heights, plain)
            count = data.draw(st.integers(0, len(plain) - index))
            heights.remove(index, count)
            del plain[index : index + count]
            _agree(heights, plain)


@given(st.lists(st.integers(1, 400), min_size=1, max_size=60))
def test_row_at_returns_the_row_that_covers_a_pixel(sizes: list[int]) -> None:
    heights = RowHeights()
    heights.reset(sizes)
    for index in range(len(sizes)):
        assert heights.row_at(heights.offset_of(index)) == index
        assert heights.row_at(heights.offset_of(index + 1) - 1) == index
    assert heights.row_at(-5) == 0
    assert heights.row_at(heights.total + 5) == len(sizes) - 1


def test_a_new_width_turns_all_heights_into_estimates() -> None:
    heights = RowHeights()
    heights.reset([10, 20])
    heights.measure(0, 12)
    heights.forget_all()
    assert not heights.is_measured(0)
    assert heights.total == 32
