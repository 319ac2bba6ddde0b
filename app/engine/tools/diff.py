"""The difference of two texts as a unified diff with counts. Quick for large files with a small change."""

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass

_CONTEXT = 3
_LONGEST = 20_000
# Above this many pairs of lines the whole middle counts as replaced: difflib would take seconds.
_MOST_PAIRS = 4_000_000
_HUNK = re.compile(r"^@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@")


@dataclass(frozen=True, slots=True)
class Change:
    """`diff` is cut at 20,000 characters; the counts are of all lines."""

    diff: str
    added: int
    removed: int

    @property
    def summary(self) -> str:
        return f"+{self.added} −{self.removed}"


def compare(before: str, after: str, name: str) -> Change:
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    prefix = _common(old, new)
    suffix = min(_common(old[::-1], new[::-1]), len(old) - prefix, len(new) - prefix)
    start, keep = max(0, prefix - _CONTEXT), max(0, suffix - _CONTEXT)
    lines = list(_lines(old[start : len(old) - keep], new[start : len(new) - keep], start))
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    text = "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    if len(text) > _LONGEST:
        text = text[:_LONGEST].rpartition("\n")[0] + "\n… the rest of the diff is left out\n"
    return Change(f"--- {name}\n+++ {name}\n{text}" if lines else "", added, removed)


def _common(old: list[str], new: list[str]) -> int:
    count = 0
    for left, right in zip(old, new, strict=False):
        if left != right:
            break
        count += 1
    return count


def _lines(old: list[str], new: list[str], start: int) -> Iterator[str]:
    """Hunks of the diff, their line numbers moved by `start`."""
    if len(old) * len(new) > _MOST_PAIRS:
        yield f"@@ -{start + 1},{len(old)} +{start + 1},{len(new)} @@\n"
        yield from (f"-{line}" for line in old)
        yield from (f"+{line}" for line in new)
        return
    for index, line in enumerate(difflib.unified_diff(old, new, n=_CONTEXT)):
        if index < 2:
            continue
        match = _HUNK.match(line)
        if match:
            left, right = int(match[1]) + start, int(match[3]) + start
            yield f"@@ -{left}{match[2] or ''} +{right}{match[4] or ''} @@\n"
        else:
            yield line
