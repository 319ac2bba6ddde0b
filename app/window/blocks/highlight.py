"""Code cut into runs of one kind each by Pygments, once for each finished text."""

import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from pygments.lexers import get_lexer_by_name  # pyright: ignore[reportUnknownVariableType] - its options are untyped
from pygments.token import Comment, Keyword, Name, Number, Operator, String, _TokenType  # pyright: ignore[reportPrivateUsage] - Pygments has no other name for the type of its tokens
from pygments.util import ClassNotFound

Kind = Literal["text", "keyword", "string", "number", "name", "comment"]

# Longer texts and lines are data more often than code.
_LONGEST = 20_000
_LONGEST_LINE = 500
# A hostile text can hold a lexer up for minutes, some of the rare ones within one pattern: what is coloured is of these
# languages, and as far as it goes in this time.
_LONGEST_S = 0.05
_LANGUAGES = frozenset(
    (
        *("bash", "batch", "c", "c#", "c++", "clojure", "cmake", "cpp", "csharp", "css", "dart", "diff", "docker"),
        *("dockerfile", "elixir", "go", "golang", "haskell", "hs", "html", "http", "ini", "java", "javascript", "js"),
        *(
            "json",
            "jsx",
            "kotlin",
            "latex",
            "lua",
            "make",
            "makefile",
            "markdown",
            "md",
            "nginx",
            "objective-c",
            "perl",
        ),
        *(
            "php",
            "powershell",
            "ps1",
            "py",
            "python",
            "python3",
            "r",
            "rb",
            "rs",
            "ruby",
            "rust",
            "scala",
            "scss",
            "sh",
        ),
        *("shell", "sql", "swift", "tex", "toml", "ts", "tsx", "typescript", "vue", "xml", "yaml", "yml", "zig", "zsh"),
    )
)


@dataclass(frozen=True, slots=True)
class Run:
    text: str
    kind: Kind


@lru_cache(maxsize=128)
def runs(code: str, language: str) -> tuple[Run, ...]:
    """The whole text in order; one plain run where the language is not known or the text or a line is very long."""
    if language.lower() not in _LANGUAGES or len(code) > _LONGEST or _longest_line(code) > _LONGEST_LINE:
        return (Run(code, "text"),)
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return (Run(code, "text"),)
    code = code.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")  # as Pygments does
    found: list[Run] = []
    length, end = 0, time.perf_counter() + _LONGEST_S
    for token, text in lexer.get_tokens(code):
        if time.perf_counter() > end:
            found.append(Run(code[length:], "text"))
            break
        length += len(text)
        kind = _kind(token) if text.strip() else (found[-1].kind if found else "text")
        if found and found[-1].kind == kind:
            found[-1] = Run(found[-1].text + text, kind)
        else:
            found.append(Run(text, kind))
    return tuple(found)


def _longest_line(code: str) -> int:
    return max(map(len, code.split("\n")))


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
