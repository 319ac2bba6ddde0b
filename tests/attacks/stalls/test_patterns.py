"""Every regular expression of the engine, its clients and the protocol, on long hostile text."""

import importlib
import pkgutil
import re
import time
from collections.abc import Iterator
from typing import TypeAlias, cast

import pytest

from tests.attacks.campaign import Campaign

Pattern: TypeAlias = "re.Pattern[str] | re.Pattern[bytes]"

_PACKAGES = (
    "errand.engine",
    "errand.client",
    "errand.cli",
    "errand.protocol",
    "errand.system",
    "errand.text",
    "errand.window",
)
_LENGTH = 20_000
# A linear pattern takes a hundredth of this; a quadratic one many times as much.
_HANGS_S = 1.0
# Used only with `match` and `fullmatch`: a search would start at every character.
_NEVER_SEARCHED = (
    "json_documents._TO_BRACKET",
    "argument_check._NUMBER",
    "claude_code._PERSISTED",
    "codex._IMAGE_TAG",
    "url_secrets._IS_LIST",
    "markdown._ITEM",
    "markdown_pieces._FENCE",
    "markdown_pieces._RULE",
    "markdown_pieces._DELIMITERS",
    "markdown._UNDECIDED",
    "skills._FIELD",
    "gitignore._BRACKET",
    "special._SED_PRINTS",
    "special._TAR_LIST",
)
_PIECES = (
    "a",
    "1",
    " ",
    "\n",
    "\r",
    '"',
    "'",
    "\\",
    "`",
    "-",
    ".",
    "<",
    "[",
    "(",
    "$",
    "@",
    ":",
    "=",
    "\x1b[",
    "1h",
    "a ",
)
_TAILS = ("", "\0!", "a", "\n")


def _patterns() -> Iterator[tuple[str, Pattern]]:
    for package in map(importlib.import_module, _PACKAGES):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if "migrations" in module.name or module.name.endswith("__main__"):
                continue
            names: dict[str, object] = vars(importlib.import_module(module.name))
            for name, value in names.items():
                for pattern in cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,):
                    if isinstance(pattern, re.Pattern):
                        yield f"{module.name}.{name}", cast(Pattern, pattern)


_ALL = {pattern.pattern: (name, pattern) for name, pattern in _patterns()}


@pytest.mark.parametrize(("name", "pattern"), _ALL.values(), ids=[name for name, _ in _ALL.values()])
def test_a_pattern_reads_hostile_text_without_hanging(name: str, pattern: Pattern, campaign: Campaign) -> None:
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    pieces = [*_PIECES, *sorted(set(re.findall(r"[A-Za-z]{2,}", source)))]
    cases = [(lead, piece, tail) for lead in ("", '"', "x:") for piece in pieces for tail in _TAILS]
    random = campaign.random(f"pattern {name}")
    for lead, piece, tail in random.sample(cases, min(len(cases), campaign.rounds(8, len(cases)))):
        text = lead + piece * (_LENGTH // len(piece)) + tail
        started = time.thread_time()
        _read(pattern, text, is_searched=not name.endswith(_NEVER_SEARCHED))
        taken = time.thread_time() - started
        campaign.count("hostile texts read by patterns")
        campaign.peak("longest read by a pattern, ms", taken * 1000)
        assert taken < _HANGS_S, (lead, piece, tail)


def _read(pattern: Pattern, text: str, *, is_searched: bool) -> None:
    if isinstance(pattern.pattern, str):
        texts = cast("re.Pattern[str]", pattern)
        texts.fullmatch(text)
        (texts.search if is_searched else texts.match)(text)
    else:
        bytes_ = cast("re.Pattern[bytes]", pattern)
        bytes_.fullmatch(text.encode())
        (bytes_.search if is_searched else bytes_.match)(text.encode())
