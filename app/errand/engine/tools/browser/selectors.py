"""How a model names an element: a reference of the accessibility tree, a selector, or its text."""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from heapq import nlargest
from itertools import islice
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["selector", "label", "placeholder", "button", "link", "textbox", "text"]

_REFERENCE = re.compile(r"\[?(?:ref=|aria-ref=)?((?:f\d+)?e\d+)\]?")
_ENGINE = re.compile(r"(?:css|xpath|text|role|id|data-testid|label|placeholder|aria-ref)=")
_ELEMENT = re.compile(r"- '?(button|link|textbox|searchbox|combobox|checkbox|radio|menuitem|tab|option|switch)\b")
_MOST_SIMILAR = 10
_MAX_LINES = 5_000
_MAX_COMPARED = 50


def ways_to_find(named: str, *, is_field: bool) -> Iterator[tuple[Kind, str]]:
    """In order of preference."""
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


def similar_elements(tree: str, named: str) -> list[str]:
    """Lines of the accessibility tree that can be used, the most similar first.

    A page may have any number of elements: of the first thousands, only those that share most pairs of letters are
    compared.
    """
    usable = (line.strip().removeprefix("- ")[:200] for line in tree.splitlines() if _ELEMENT.match(line.lstrip()))
    lines = {line: line.lower() for line in islice(usable, _MAX_LINES)}
    wanted = named.lower()[:200]
    pairs = {wanted[at : at + 2] for at in range(len(wanted) - 1)}
    likeliest = nlargest(_MAX_COMPARED, lines, key=lambda line: sum(pair in lines[line] for pair in pairs))
    return nlargest(_MOST_SIMILAR, likeliest, key=lambda line: SequenceMatcher(None, wanted, lines[line]).ratio())
