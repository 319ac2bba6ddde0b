"""Formulas: which are drawn, how they stand in a text, and what is copied and said of them."""

from collections.abc import Callable
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QColor, QTextCursor
from PySide6.QtWidgets import QApplication
from ziamath.nodes.mnode import Mnode

from errand.window.rows.markdown import fragment_markdown, markdown_document, plain_text
from errand.window.rows.markup.decoration import MarkdownDocument
from errand.window.rows.markup.formula_layout import lay_out
from errand.window.rows.markup.formulas import FORMULAS
from errand.window.rows.markup.source import Formula
from errand.window.rows.markup.text_objects import OBJECT
from errand.window.rows.text_view import TextView
from errand.window.theme.theme import Theme
from tests.support.rows import reply
from tests.window.rows.conftest import WIDTH, MakeRowView, part

MATRIX = r"\begin{pmatrix} a & b \\ c & d \end{pmatrix}"
_MAX_PARTS = 2_000


@pytest.fixture(autouse=True)
def _nothing_is_drawn_yet(theme: Theme) -> None:  # pyright: ignore[reportUnusedFunction]
    FORMULAS.clear()


def formula(tex: str, *, is_display: bool = True) -> Formula:
    return Formula(f"$${tex}$$" if is_display else f"${tex}$", tex, is_display)


def filled(markdown: str, theme: Theme) -> MarkdownDocument:
    """The document of a text with its formulas drawn."""
    document = markdown_document(markdown, theme)
    assert isinstance(document, MarkdownDocument)
    while document.formulas is not None and document.formulas.is_pending:
        document.formulas.fill_in()
    return document


def whole(document: MarkdownDocument) -> QTextCursor:
    cursor = QTextCursor(document)
    cursor.select(QTextCursor.SelectionType.Document)
    return cursor


@pytest.mark.parametrize(
    "tex",
    [
        r"E = mc^2",
        r"\int_0^\infty e^{-x^2}\,dx = \frac{\sqrt{\pi}}{2}",
        MATRIX,
        r"f(x) = \begin{cases} x & \text{if } x > 0 \\ 0 & \text{otherwise} \end{cases}",
        r"\begin{aligned} a &= b \\ &= \left[ c \right] \end{aligned}",
        r"\begin{equation} a = b \label{eq:1} \tag{1} \end{equation}",
        r"\bm{x} \in \mathbb{R}^n, \quad \lVert x \rVert < \epsilon \nonumber",
        r"\Big\{ x \mid x > 0 \Big\}",
        r"\operatorname*{arg\,max}_\theta \mathcal{L}(\theta)",
        "a < b > c",
        "{" * 30 + "x" + "}" * 30,
        "a'" + "+x" * 100,
    ],
)
def test_a_formula_is_drawn(tex: str) -> None:
    shape = lay_out(formula(tex))
    assert shape is not None
    assert shape.outlines


@pytest.mark.parametrize(
    "tex",
    [
        r"\unknown{x} + 1",
        r"\frac{a}",
        r"\left( x",
        "{x",
        r"\text{中文}",
        r"\ce{H2O}",
        r"\def\a{\b\b}\def\b{\c\c}\a",
        r"\newcommand{\a}{x}\a",
        r"\hspace{99999em} x",
        "x+" * 999,
        "{" * 900 + "x" + "}" * 900,
        r"\sqrt{" * 60 + "x" + "}" * 60,
        r"\left(" * 30 + "x" + r"\right)" * 30,
        r"\begin{pmatrix}" * 5 + "a&b" + r"\end{pmatrix}" * 5 + "&c" * 400,
        "",
    ],
)
def test_a_formula_that_cannot_be_read_or_would_take_long_is_none(tex: str) -> None:
    assert lay_out(formula(tex)) is None


@pytest.mark.parametrize(
    "tex",
    [
        r"\left(" * 9 + "x" + r"\right)" * 9,
        r"\frac{1}{1+\left(" * 8 + "x" + r"\right)}" * 8,
        r"\begin{pmatrix}" * 4 + r"\sum_i" + r"\end{pmatrix}" * 4,
        r"\sqrt{\left|" * 9 + "x" + r"\right|}" * 9,
        "^{" * 30 + "x" + "}" * 30,
        r"\phantom{" * 10 + "x" + "}" * 10,
        r"\vphantom{(" * 8 + "x" + ")}" * 8,
        r"\left\{" + "x" * 300 + r"\right\}",
        r"\begin{matrix}" + r"\\".join(["a&b&c&d"] * 30) + r"\end{matrix}",
    ],
)
def test_the_work_for_a_formula_is_bounded(tex: str, monkeypatch: pytest.MonkeyPatch) -> None:
    built = 0
    build = cast("Callable[..., None]", Mnode.__init__)  # pyright: ignore[reportUnknownMemberType] -- a library's types

    def count(*arguments: object, **named: object) -> None:
        nonlocal built
        built += 1
        build(*arguments, **named)

    monkeypatch.setattr(Mnode, "__init__", count)
    lay_out(formula(tex))
    assert built < _MAX_PARTS


_TOKENS = r"a 1 { } _ ^ & \\ ( ) | ' \frac \left( \right) \sqrt \sum \begin{matrix} \end{matrix} \text \unknown"
_WORDS = st.sampled_from(_TOKENS.split())


@settings(max_examples=150, deadline=None)
@given(st.lists(_WORDS, max_size=25))
def test_no_text_raises(tokens: list[str]) -> None:
    lay_out(formula(" ".join(tokens)))


def test_a_formula_has_a_place_of_its_size_until_it_is_drawn(theme: Theme) -> None:
    first = markdown_document("before $x_1$ after", theme)
    assert isinstance(first, MarkdownDocument)
    assert first.formulas is not None
    assert first.formulas.is_pending
    assert first.toPlainText() == f"before {OBJECT} after"
    before = first.size()
    while first.formulas.is_pending:
        first.formulas.fill_in()
    assert first.size().height() == before.height()
    assert first.toPlainText() == f"before {OBJECT} after"


def test_what_was_drawn_once_is_there_at_once_in_any_colour_and_size(theme: Theme, qapp: QApplication) -> None:
    filled("$x_1$", theme)
    theme.set_mode("dark")
    theme.step_zoom(1)
    again = markdown_document("$x_1$", theme)
    assert isinstance(again, MarkdownDocument)
    assert again.formulas is not None
    assert not again.formulas.is_pending


def test_a_formula_that_cannot_be_read_stays_as_its_source(theme: Theme) -> None:
    document = filled(r"so $\unknown{x}$ and $x$", theme)
    assert document.toPlainText() == rf"so $\unknown{{x}}$ and {OBJECT}"
    assert filled(r"so $\unknown{x}$", theme).toPlainText() == r"so $\unknown{x}$"


def test_a_display_formula_stands_in_the_middle_of_a_line_of_its_own(theme: Theme) -> None:
    document = filled("The 😀 sum\n$$a$$\nand $$b$$ are $c$.", theme)
    blocks = [document.findBlockByNumber(number) for number in range(document.blockCount())]
    assert [block.text() for block in blocks] == ["The 😀 sum", OBJECT, "and", OBJECT, f"are {OBJECT}."]
    is_centred = [block.blockFormat().alignment() == Qt.AlignmentFlag.AlignHCenter for block in blocks]
    assert is_centred == [False, True, False, True, False]


def test_in_an_item_a_display_formula_has_a_line_and_no_bullet(theme: Theme) -> None:
    document = filled("- one $$a$$ two\n- three", theme)
    assert document.toPlainText() == f"one\n{OBJECT}\ntwo\nthree"
    assert document.blockCount() == 2


def test_a_wide_formula_is_made_smaller(theme: Theme) -> None:
    document = filled(f"$${'+'.join('abcdefgh' * 10)}$$", theme)
    document.setTextWidth(300)
    assert document.size().width() <= 300


@pytest.mark.parametrize("drawn", [False, True])
def test_copied_text_has_the_sources(theme: Theme, drawn: bool) -> None:
    text = r"a $\frac{a}{b}$, $x$$x$ **and** \(x_1\)"
    document = filled(text, theme) if drawn else markdown_document(text, theme)
    assert isinstance(document, MarkdownDocument)
    assert fragment_markdown(whole(document)) == text
    assert plain_text(whole(document)) == text.replace("*", "")


def test_a_screen_reader_says_the_source(show: MakeRowView) -> None:
    view = part(show(reply(r"the root $\sqrt{2}$ of two")), TextView, "Reply")
    interface = QAccessible.queryAccessibleInterface(view)
    assert interface.text(QAccessible.Text.Description) == r"the root $\sqrt{2}$ of two"
    plain = part(show(reply("no formula")), TextView, "Reply")
    assert QAccessible.queryAccessibleInterface(plain).text(QAccessible.Text.Description) == ""


def test_a_formula_has_the_colour_of_the_text_around_it(show: MakeRowView, theme: Theme) -> None:
    row_view = show(reply("$$\\rule{3em}{3em}$$\n"))
    view = part(row_view, TextView, "Reply")
    while view.is_pending:
        view.fill_in()
    row_view.resize(WIDTH, row_view.height_for(WIDTH))
    image = view.grab().toImage()
    colours = {image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height())}
    assert QColor(theme.tokens.text).name() in colours
