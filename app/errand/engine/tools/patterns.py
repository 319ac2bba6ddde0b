"""Compiles regular expressions of models and other programs within bounds."""

import re

import regex

_MAX_PATTERN_LENGTH = 10_000
# `regex` makes as many copies of an item as it must occur at least, about a million in a second and 280 MB, and
# holds the interpreter's lock meanwhile.
_MAX_COPIES = 20_000
_REPEAT = re.compile(r"\{(\d{1,9})(?:,\d{0,9})?\}")


def compile_pattern(text: str, flags: int = 0) -> "regex.Pattern[str]":
    """Compile a regular expression in milliseconds; raises ValueError with the reason, as the end of a sentence."""
    if len(text) > _MAX_PATTERN_LENGTH:
        raise ValueError(f"it has {len(text):,} characters; at most {_MAX_PATTERN_LENGTH:,} are possible")
    if _copies(text) > _MAX_COPIES:
        raise ValueError("its repetitions such as {1000} multiply to too much")
    try:
        return regex.compile(text, flags)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    except regex.error as error:
        raise ValueError(str(error)) from error


def is_usable_pattern(text: str) -> bool:
    """Return True if the checker of schemas can compile a pattern, which may be one of another language."""
    try:
        compile_pattern(text)
        re.compile(text)
    except (ValueError, RecursionError, OverflowError, re.error):
        return False
    return True


def _copies(text: str) -> int:
    """About how many items the compiled expression has, counting each repetition that must be there."""
    sizes, last, at = [0], 0, 0  # of the open groups, and of the last item
    while at < len(text):
        letter, repeat = text[at], _REPEAT.match(text, at)
        end = at + 1
        if repeat is not None:
            sizes[-1] += last * (max(int(repeat[1]), 1) - 1)
            last, end = last * max(int(repeat[1]), 1), repeat.end()
        elif letter == "(":
            sizes.append(0)
            last = 0
        elif letter == ")" and len(sizes) > 1:
            last = sizes.pop()
            sizes[-1] += last
        else:
            last = 1
            sizes[-1] += 1
            if letter == "\\":
                end = at + 2
            elif letter == "[":
                end = _end_of_class(text, at)
        at = end
    return sum(sizes)


def _end_of_class(text: str, start: int) -> int:
    """Return the position after a class such as `[^]a-z]`, or after its bracket if nothing ends it."""
    at = start + 2 if text.startswith("[^", start) else start + 1
    at += text.startswith("]", at)
    while (end := text.find("]", at)) >= 0:
        slashes = len(text[at:end]) - len(text[at:end].rstrip("\\"))
        if slashes % 2 == 0:
            return end + 1
        at = end + 1
    return start + 1
