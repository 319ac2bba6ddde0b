"""Code cut into runs of one kind each by Pygments, once for each finished text."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from pygments.lexers import get_lexer_by_name  # pyright: ignore[reportUnknownVariableType] - its options are untyped
from pygments.token import Comment, Keyword, Name, Number, Operator, String, _TokenType  # pyright: ignore[reportPrivateUsage] - Pygments has no other name for the type of its tokens
from pygments.util import ClassNotFound

Kind = Literal["text", "keyword", "string", "number", "name", "comment"]

# Longer texts are data more often than code, and take over 50 ms to colour.
_LONGEST = 20_000


@dataclass(frozen=True, slots=True)
class Run:
    text: str
    kind: Kind


@lru_cache(maxsize=128)
def runs(code: str, language: str) -> tuple[Run, ...]:
    """The whole text in order; one plain run where the language is not known or the text is very long."""
    if not language or len(code) > _LONGEST:
        return (Run(code, "text"),)
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return (Run(code, "text"),)
    found: list[Run] = []
    for token, text in lexer.get_tokens(code):
        kind = _kind(token) if text.strip() else (found[-1].kind if found else "text")
        if found and found[-1].kind == kind:
            found[-1] = Run(found[-1].text + text, kind)
        else:
            found.append(Run(text, kind))
    return tuple(found)


def _kind(token: _TokenType) -> Kind:
    if token in Comment:
        return "comment"
    if token in Keyword or token in Operator.Word:
        return "keyword"
    if token in String:
        return "string"
    if token in Number:
        return "number"
    if token in Name.Function or token in Name.Class or token in Name.Tag or token in Name.Decorator:
        return "name"
    return "text"
