"""Texts of models and pages are compared in bounded time, whatever they contain."""

import time
from collections.abc import Callable
from pathlib import Path

from errand.engine.tools.browser.selectors import similar_elements
from errand.engine.tools.code.loose_match import reindented
from errand.protocol.base import JsonObject
from tests.support.loop_parts import make_tool_context, run, text_of, tool_of

LETTERS = "abcdefghij klmnop qrstuv "


def cpu_s(work: Callable[[], object]) -> float:
    """The CPU time of the best of three runs."""
    taken: list[float] = []
    for _ in range(3):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return min(taken)


def page(count: int) -> str:
    lines = (LETTERS[number % 20 :] * 8 + str(number) for number in range(count))
    return "\n".join(f'  - button "{line}" [ref=e{number}]' for number, line in enumerate(lines))


def test_elements_of_a_page_are_compared_up_to_a_limit() -> None:
    small, large = page(6_000), page(96_000)
    selector = LETTERS[3:] * 8
    assert "[ref=e3]" in similar_elements("\n".join(f"- button {n} [ref=e{n}]" for n in range(9)), "button 3")[0]
    assert cpu_s(lambda: similar_elements(large, selector)) < 4 * cpu_s(lambda: similar_elements(small, selector))


def test_lines_that_repeat_are_matched_in_time_that_grows_like_their_number() -> None:
    def match(count: int) -> None:
        reindented(" a\n b\n" * (count // 2), " a\n" * count, "\ta\n" * count)

    match(10)
    assert cpu_s(lambda: match(1_600)) < 40 * cpu_s(lambda: match(160))


async def test_an_edit_of_a_thousand_equal_lines_is_made(tmp_path: Path) -> None:
    context = make_tool_context(tmp_path)
    (context.workspace / "f").write_text("\ta\n" * 1_500)
    arguments: JsonObject = {"action": "patch", "path": "f", "old": " a\n" * 1_500, "new": " a\n b\n" * 750}
    result = await run(tool_of(context, "code"), arguments)
    assert "matched ignoring white space; lines 1–1500" in text_of(result)
    assert (context.workspace / "f").read_text() == "\ta\n\tb\n" * 750
