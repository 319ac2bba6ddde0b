"""The transcript alone: opening a long conversation, paging up, streaming at its end, and its memory."""

import os
import time
from collections.abc import Callable

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtWidgets import QApplication

from errand.client.conversation import rows as shown
from errand.client.conversation.markdown_pieces import MarkdownPieces, split_markdown
from errand.window.rows.text_view import TextView
from errand.window.theme.theme import Theme
from errand.window.transcript.view import TranscriptView
from tests.benchmarks.bench import median, p99
from tests.benchmarks.process_memory import private_mb
from tests.benchmarks.row import Row
from tests.support.row_actions import KeptActions
from tests.support.rows import RowList, long_conversation, reply, tool

_ROWS = 10_000
_PAGES = 300
_MORE_PAGES = 900
_CHARACTERS = 20_000
_FLUSH = 40  # characters; 100 tokens per second are about this many every 33 ms
_WORDS = "the discount was taken off as an **amount** and `total` gave 190, "


async def window_transcript() -> list[Row]:
    """All times include layout and painting, unless the name says that only the update is measured."""
    application = QApplication([])
    theme = Theme()
    theme.apply(application)
    theme.set_motion(False)
    warm = _view(theme, RowList(long_conversation(20)))
    warm.grab()
    application.processEvents()
    rows = RowList(long_conversation(_ROWS))
    before = private_mb()
    started = time.perf_counter()
    view = _view(theme, rows)
    view.grab()
    opened = time.perf_counter() - started
    application.processEvents()
    pages = _pages(view, application, _PAGES)
    used = private_mb() - before
    _pages(view, application, _MORE_PAGES)
    grown = private_mb() - before - used
    warm.close()
    updates, painted = _stream(view, rows, lambda text: reply(text, "s", streaming=True), single_row=False)
    code, _ = _stream(view, rows, lambda text: reply(f"```python\n{text}", "s", streaming=True), single_row=True)
    output, _ = _stream(
        view, rows, lambda text: tool("shell", {"command": "make"}, None, "s", output=text), single_row=True
    )
    lines = _stream_lines(view, rows)
    first, slices = _formulas(view, rows, application)
    view.close()
    return [
        Row("open 10,000 rows at the end", opened * 1000, "ms", 100),
        Row("page up among 10,000 rows, p99", p99(pages) * 1000, "ms", 33),
        Row("page up among 10,000 rows, median", median(pages) * 1000, "ms", 33),
        Row("transcript memory after 300 pages", used, "MB", 20),
        Row("transcript memory, what 900 more pages add", grown, "MB", 1),
        Row("flush of streamed text at 20,000 characters, CPU median", median(updates) * 1000, "ms", 1),
        Row("flush of streamed text and its painting, p99", p99(painted) * 1000, "ms", 16),
        Row("flush of streamed code at 20,000 characters, CPU median", median(code) * 1000, "ms", 1),
        Row("flush of a tool's output at 20,000 characters, CPU median", median(output) * 1000, "ms", 1),
        Row("first paint of a message with 30 formulas", first * 1000, "ms", 50),
        Row(
            "drawing one of 30 formulas later, with its layout and painting, CPU median",
            median(slices) * 1000,
            "ms",
            33,
        ),
        Row("100 more of 100,000 lines of a paragraph and their painting, CPU p99", p99(lines) * 1000, "ms", 100),
    ]


def _view(theme: Theme, rows: RowList) -> TranscriptView:
    view = TranscriptView(rows, theme, KeptActions())
    view.resize(900, 800)
    view.show()
    view.lay_out()
    return view


def _pages(view: TranscriptView, application: QApplication, count: int) -> list[float]:
    """Scroll up page by page as with a held key, without idle time to prepare rows, and return the times."""
    times: list[float] = []
    for _ in range(count):
        started = time.perf_counter()
        view.scroll_by(-view.viewport().height())
        view.viewport().repaint()
        times.append(time.perf_counter() - started)
    application.processEvents()
    return times


def _stream(
    view: TranscriptView, rows: RowList, row: Callable[[str], shown.Row], *, single_row: bool
) -> tuple[list[float], list[float]]:
    """The last 5,000 of 20,000 characters; one row per paragraph, or one for all with `single_row`."""
    view.to_end()
    text = "".join(f"{_WORDS}\n" if number % 8 == 7 else _WORDS for number in range(_CHARACTERS // len(_WORDS)))
    pieces = [text] if single_row else [text[at : at + 500] for at in range(0, len(text), 500)]
    updates: list[float] = []
    painted: list[float] = []
    for piece in pieces:
        rows.append(reply("", "s", streaming=True))
        for end in range(_FLUSH, len(piece), _FLUSH):
            changed_row = row(piece[:end])
            started, busy = time.perf_counter(), time.thread_time()
            rows.change(rows.count() - 1, changed_row)
            view.lay_out()
            updates.append(time.thread_time() - busy)  # it waits for nothing, so CPU time excludes other processes
            view.viewport().repaint()
            painted.append(time.perf_counter() - started)
    return updates[-120:], painted[-120:]


def _stream_lines(view: TranscriptView, rows: RowList) -> list[float]:
    """A paragraph of 100,000 lines, split into rows as the store does it."""
    pieces, texts, times = MarkdownPieces(), tuple[str, ...](), list[float]()
    text = f"{_WORDS}\n" * 100
    for _ in range(1_000):
        busy = time.thread_time()
        before, texts = len(texts), pieces.append(text)
        if before:
            rows.change(rows.count() - 1, reply(texts[before - 1], f"p{before - 1}", streaming=True))
        for number in range(before, len(texts)):
            rows.append(reply(texts[number], f"p{number}", streaming=True))
        view.lay_out()
        view.viewport().repaint()
        times.append(time.thread_time() - busy)
    return times


def _formulas(view: TranscriptView, rows: RowList, application: QApplication) -> tuple[float, list[float]]:
    """A message with 30 formulas that were not drawn before: until it is seen, and each turn in which one is drawn."""
    text = "\n\n".join(
        rf"Let $x_{{{number}}}$ be the root of $$\frac{{a_{{{number}}} + b^2}}{{\sqrt{{c}}}} = \sum_i i^{number}$$ now."
        for number in range(15)
    )
    rows.append(reply("$x$", "library"))
    view.to_end()
    while _pending(view):
        application.processEvents()  # the library is imported
    started = time.perf_counter()
    rows.append(*(reply(piece, f"formula{number}") for number, piece in enumerate(split_markdown(text))))
    view.to_end()
    view.viewport().repaint()
    first, slices, left = time.perf_counter() - started, list[float](), _pending(view)
    while left:
        busy = time.thread_time()
        application.processEvents()
        view.viewport().repaint()
        now = _pending(view)
        if now < left:
            slices.append((time.thread_time() - busy) / (left - now))
        left = now
    return first, slices


def _pending(view: TranscriptView) -> int:
    """The number of visible texts with formulas that are not drawn."""
    return sum(text.is_pending for text in view.findChildren(TextView) if text.isVisible())
