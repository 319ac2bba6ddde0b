"""The rows of a reply while it streams."""

from typing import Literal

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from errand.client.conversation.rows import ReplyRow, Row, Speaker, SpeakerRow, ThinkingRow
from errand.client.conversation.streaming import RowTail, StreamingRows
from errand.protocol.blocks import Block, TextBlock, ThinkingBlock
from errand.protocol.events import TextDelta
from tests.support.records import node

Kind = Literal["text", "thinking", "toolCall"]
STEPS = st.lists(
    st.tuples(st.booleans(), st.sampled_from(["", " ", "word", "\n\n", "- item\n", "```\ncode\n```\n"])), max_size=12
)


def delta(text: str, offset: int, block: int = 0, kind: Kind = "text") -> TextDelta:
    return TextDelta(conversation_id="c", task_id="t", node_id="n", block=block, kind=kind, offset=offset, text=text)


def streamed(*blocks: Block) -> StreamingRows:
    """A node of the third turn with these blocks."""
    return StreamingRows(replace(node("n", status="streaming"), turn=3, blocks=blocks))


def take(rows: list[Row], tail: RowTail | None) -> None:
    if tail is not None:
        rows[tail.first :] = tail.rows


def words(rows: list[Row]) -> list[tuple[str, bool, int]]:
    texts: list[tuple[str, bool, int]] = []
    for row in rows:
        assert isinstance(row, ReplyRow | ThinkingRow)
        texts.append(
            (row.markdown, row.streaming, row.step) if isinstance(row, ReplyRow) else (row.text, row.streaming, -1)
        )
    return texts


@given(STEPS)
def test_applying_each_tail_gives_all_rows(steps: list[tuple[bool, str]]) -> None:
    streaming = streamed()
    rows, blocks = list[Row](), list[Block]()
    for begins, text in steps:
        if begins or not blocks:
            blocks.append(TextBlock(text="") if len(blocks) % 2 else ThinkingBlock(text=""))
        block = blocks[-1]
        assert isinstance(block, TextBlock | ThinkingBlock)
        kind: Kind = "text" if isinstance(block, TextBlock) else "thinking"
        take(rows, streaming.add(delta(text, len(block.text), len(blocks) - 1, kind)))
        blocks[-1] = replace(block, text=block.text + text)
        assert rows == streaming.rows(())
    assert words(rows) == words(streamed(*blocks).rows(()))


def test_a_text_that_restarts_replaces_all_rows_after_it() -> None:
    streaming = streamed()
    rows: list[Row] = []
    take(rows, streaming.add(delta("a thought", 0, 0, "thinking")))
    take(rows, streaming.add(delta("one\n\ntwo\n\n", 0, 1)))
    take(rows, streaming.add(delta("three", 10, 1)))
    assert words(rows) == [("a thought", False, -1), ("one\n\n", False, 3), ("two\n\n", False, 0), ("three", True, 0)]
    take(rows, streaming.add(delta("four", 0, 0)))
    assert words(rows) == [("four", True, 3)]


def test_growing_text_replaces_only_its_last_row() -> None:
    streaming = streamed()
    streaming.add(delta("one\n\ntwo", 0))
    tail = streaming.add(delta(" more\n\nthree", 8))
    assert tail is not None
    assert (tail.first, words(list(tail.rows))) == (1, [("two more\n\n", False, 0), ("three", True, 0)])


def test_text_after_a_gap_and_calls_change_nothing() -> None:
    streaming = streamed()
    streaming.add(delta("one", 0))
    assert streaming.add(delta("later", 8)) is None
    assert streaming.add(delta("{", 0, 1, "toolCall")) is None
    assert words(streaming.rows(())) == [("one", True, 3)]


def test_a_tail_is_counted_from_the_rows_above() -> None:
    streaming = streamed()
    speaker = SpeakerRow("n/speaker", streaming.node, Speaker("Anna", ""))
    rows = streaming.rows([speaker])
    for offset, text in ((0, "one\n\n"), (5, "two")):
        take(rows, streaming.add(delta(text, offset)))
    assert rows == [speaker, *streaming.rows(())]
    assert words(rows[1:]) == [("one\n\n", False, 3), ("two", True, 0)]
