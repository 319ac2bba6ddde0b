"""Markdown takes time in proportion to its length, whatever it is made of."""

import time

import pytest

from errand.window.rows.markdown import markdown_document
from errand.window.theme.theme import Theme

_SHORT, _LONG = 4_000, 16_000
# Four times the text takes about four times as long; sixteen times would be quadratic.
_MAX_RATIO = 9.0


def cpu_seconds(text: str, theme: Theme) -> float:
    """The processor time of making a document, the best of three."""
    times: list[float] = []
    for _ in range(3):
        begun = time.process_time()
        document = markdown_document(text, theme)
        document.setTextWidth(700)
        document.size()
        times.append(time.process_time() - begun)
    return min(times)


@pytest.mark.parametrize(
    "unit", ["[^1]", "[^1] ", "<sub>a</sub>", "<kbd>a</kbd> ", "`a` ", "a@b.cd ", "https://b.cd ", "**a** "]
)
def test_four_times_the_text_takes_about_four_times_as_long(theme: Theme, unit: str) -> None:
    short, long = (cpu_seconds(unit * (length // len(unit)), theme) for length in (_SHORT, _LONG))
    assert long < _MAX_RATIO * max(short, 0.004), (short, long)
