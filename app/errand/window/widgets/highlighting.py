"""Syntax highlighting by Pygments: the language of a file, and the kinds of the parts of its text."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from pygments.lexers import get_lexer_by_name  # pyright: ignore[reportUnknownVariableType] - its options are untyped
from pygments.token import Comment, Keyword, Name, Number, Operator, String, _TokenType  # pyright: ignore[reportPrivateUsage] - Pygments has no other name for the type of its tokens
from pygments.util import ClassNotFound

TokenKind = Literal["text", "keyword", "string", "number", "name", "comment", "inserted", "deleted", "hunk"]

# Longer texts and lines are more often data than code.
_MAX_HIGHLIGHTED = 20_000
MAX_LINE_LENGTH = 500
# Hostile text can block a lexer for minutes, in some rare lexers within a single pattern. So only these languages
# are highlighted, and only as far as the lexer gets in this time.
_MAX_HIGHLIGHT_S = 0.05
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
            "patch",
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

_DIFFS = frozenset(("diff", "patch"))

# Suffixes that are not the name of their language, and names that tell it.
_SUFFIXES = {
    **dict.fromkeys(("cc", "cxx", "hh", "hpp", "hxx"), "cpp"),
    **dict.fromkeys(("cjs", "mjs"), "js"),
    **dict.fromkeys(("ex", "exs"), "elixir"),
    **dict.fromkeys(("kt", "kts"), "kotlin"),
    **dict.fromkeys(("pl", "pm"), "perl"),
    **dict.fromkeys(("cts", "mts"), "ts"),
    **{"bat": "batch", "cfg": "ini", "clj": "clojure", "cs": "csharp", "h": "c", "htm": "html", "m": "objective-c"},
    **{"mk": "make", "pyi": "py", "svg": "xml"},
}
_NAMES = {"cmakelists.txt": "cmake", "dockerfile": "docker", "gnumakefile": "make", "makefile": "make"}


def language_of(path: str) -> str:
    """Return the language of a file by its name; empty if it is not known."""
    name = path.replace("\\", "/").rpartition("/")[2].lower()
    suffix = name.rpartition(".")[2] if "." in name else ""
    own = suffix if suffix in _LANGUAGES - _DIFFS else ""
    return _NAMES.get(name) or _SUFFIXES.get(suffix) or own


@dataclass(frozen=True, slots=True)
class HighlightedRun:
    text: str
    kind: TokenKind


@lru_cache(maxsize=128)
def highlight(code: str, language: str) -> tuple[HighlightedRun, ...]:
    """Return the whole text in order; a single plain run if the language is unknown or the text or a line is too
    long.
    """
    return highlight_once(code, language)


def highlight_once(code: str, language: str) -> tuple[HighlightedRun, ...]:
    """Return the same for text that changes, which is not kept."""
    if language.lower() in _DIFFS and len(code) <= _MAX_HIGHLIGHTED:
        return tuple(_diff_runs(code))
    if language.lower() not in _LANGUAGES or len(code) > _MAX_HIGHLIGHTED or _longest_line(code) > MAX_LINE_LENGTH:
        return (HighlightedRun(code, "text"),)
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return (HighlightedRun(code, "text"),)
    code = code.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")  # as Pygments does
    merged: list[HighlightedRun] = []
    length, end = 0, time.perf_counter() + _MAX_HIGHLIGHT_S
    for token, text in lexer.get_tokens(code):
        if time.perf_counter() > end:
            merged.append(HighlightedRun(code[length:], "text"))
            break
        length += len(text)
        kind = _kind(token) if text.strip() else (merged[-1].kind if merged else "text")
        if merged and merged[-1].kind == kind:
            merged[-1] = HighlightedRun(merged[-1].text + text, kind)
        else:
            merged.append(HighlightedRun(text, kind))
    return tuple(merged)


def _diff_runs(code: str) -> Iterator[HighlightedRun]:
    """One run for each line, which ends with its newline."""
    lines = code.splitlines(keepends=True)
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        is_head = line.startswith("--- ") and following.startswith("+++ ")
        if is_head or line.startswith(("@@", "diff ", "index ", "+++ ")):
            yield HighlightedRun(line, "hunk")
        elif line.startswith("+"):
            yield HighlightedRun(line, "inserted")
        elif line.startswith("-"):
            yield HighlightedRun(line, "deleted")
        else:
            yield HighlightedRun(line, "text")


def _longest_line(code: str) -> int:
    return max(map(len, code.split("\n")))


def _kind(token: _TokenType) -> TokenKind:
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
