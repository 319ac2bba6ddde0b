"""Paints into the blocks in view what is selected."""

from app.window.blocks.block import Block
from app.window.blocks.text_mark import TextMark
from app.window.transcript.parts import parts
from app.window.transcript.selection import Span


def mark_block(block: Block, index: int, span: Span | None) -> bool:
    """True if the row is selected and has no text in which that can be seen."""
    views = parts(block)
    for number, view in enumerate(views):
        view.show_marks(_selected(span, index, number, view.document().characterCount() - 1))
    return not views and span is not None and index in span.rows


def _selected(span: Span | None, index: int, number: int, length: int) -> tuple[TextMark, ...]:
    if span is None or index not in span.rows:
        return ()
    start, end = span.within(index, number, length)
    return (TextMark(start, end, "selected"),) if start < end else ()
