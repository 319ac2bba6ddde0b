"""How a model names an element: a reference of the accessibility tree, a selector, or its text."""

import re
from collections.abc import Iterator
from contextlib import suppress
from difflib import SequenceMatcher
from heapq import nlargest
from itertools import islice
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

Kind: TypeAlias = Literal["selector", "label", "placeholder", "button", "link", "textbox", "text"]

_REFERENCE = re.compile(r"\[?(?:ref=|aria-ref=)?((?:f\d+)?e\d+)\]?")
_ENGINE = re.compile(r"(?:css|xpath|text|role|id|data-testid|label|placeholder|aria-ref)=")
_ELEMENT = re.compile(r"- '?(button|link|textbox|searchbox|combobox|checkbox|radio|menuitem|tab|option|switch)\b")
_MAX_SIMILAR_LINES = 10
_MAX_LINES = 5_000
_MAX_COMPARED = 50


def ways_to_find(named: str, *, is_field: bool) -> Iterator[tuple[Kind, str]]:
    """Return the ways to find an element, in order of preference."""
    named = named.strip()
    if reference := _REFERENCE.fullmatch(named):
        yield "selector", f"aria-ref={reference[1]}"
        return
    yield "selector", named
    if _ENGINE.match(named):
        return
    plain = named.strip("\"'“”")
    fields: tuple[Kind, ...] = ("label", "placeholder", "textbox")
    texts: tuple[Kind, ...] = ("button", "link", "label", "text")
    for kind in fields if is_field else texts:
        yield kind, plain


async def located(page: "Page", selector: str, *, is_field: bool) -> "Locator | None":
    """Return the first visible element for a reference of the tree, a selector or its text; None if there is none."""
    from playwright.async_api import Error

    for kind, value in ways_to_find(selector, is_field=is_field):
        match kind:
            case "selector":
                locator = page.locator(value)
            case "label":
                locator = page.get_by_label(value)
            case "placeholder":
                locator = page.get_by_placeholder(value)
            case "button":
                locator = page.get_by_role("button", name=value)
            case "link":
                locator = page.get_by_role("link", name=value)
            case "textbox":
                locator = page.get_by_role("textbox", name=value)
            case "text":
                locator = page.get_by_text(value)
        with suppress(Error, TimeoutError):  # no valid selector
            if count := await locator.count():
                for index in range(min(count, 10)):
                    if await locator.nth(index).is_visible():
                        return locator.nth(index)
                return locator.first
    return None


def similar_elements(tree: str, named: str) -> list[str]:
    """Lines of the accessibility tree that can be used, the most similar first.

    A page may have any number of elements: of the first thousands, only those that share most pairs of letters are
    compared.
    """
    usable = (line.strip().removeprefix("- ")[:200] for line in tree.splitlines() if _ELEMENT.match(line.lstrip()))
    lines = {line: line.lower() for line in islice(usable, _MAX_LINES)}
    searched_text = named.lower()[:200]
    pairs = {searched_text[at : at + 2] for at in range(len(searched_text) - 1)}
    likeliest = nlargest(_MAX_COMPARED, lines, key=lambda line: sum(pair in lines[line] for pair in pairs))
    return nlargest(
        _MAX_SIMILAR_LINES, likeliest, key=lambda line: SequenceMatcher(None, searched_text, lines[line]).ratio()
    )
