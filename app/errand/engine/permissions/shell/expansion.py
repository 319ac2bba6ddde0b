"""What file patterns and loops become: the words that a command gets from the files of a folder, as bash finds them."""

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from errand.engine.permissions.shell.grammar import BARE_VALUE, QUOTED_VALUE, NotPlain, PlainCommand

_GLOB = re.compile(r"[*?\[]")
_BY_LETTER = re.compile(r"[?\[]")
_SPLIT_OR_EXPANDED = re.compile(r"[\s*?\[]")
# The policy looks at each match: it must answer within milliseconds.
_MAX_MATCHES, _MAX_ENTRIES = 300, 5_000


def expanded(command: PlainCommand, folder: str, loop_words: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the words of the command, once for each value of its loop; raises `NotPlain` if they cannot be known.

    `loop_words` are all words of the loop: each value must name a file, alone or in one of them.
    """
    if command.loop is None:
        return [_with_matches(command.argv, command.patterns, folder)]
    values = _with_matches(command.loop.values, command.loop.patterns, folder)
    missing = next((value for value in values if not _names_file(value, loop_words, folder)), None)
    if missing is not None:
        raise NotPlain(f"the loop goes over {missing}, which is no file")
    if len(values) * len(command.patterns) > _MAX_MATCHES:
        raise NotPlain("the loop has too many files")
    commands: list[tuple[str, ...]] = []
    for value in dict.fromkeys(values):
        if _SPLIT_OR_EXPANDED.search(value) and any(BARE_VALUE in word for word in command.argv):
            raise NotPlain(f"the shell would split or expand {value}")
        argv = [_with_value(word, value) for word in command.argv]
        commands.append(_with_matches(argv, command.patterns, folder))
    return commands


def _names_file(value: str, loop_words: Sequence[str], folder: str) -> bool:
    used = (_with_value(word, value) for word in loop_words if QUOTED_VALUE in word or BARE_VALUE in word)
    return any(os.path.lexists(os.path.join(folder, word)) for word in (value, *used))


def _with_value(word: str, value: str) -> str:
    return word.replace(BARE_VALUE, value).replace(QUOTED_VALUE, value)


def start_of(pattern: str) -> str:
    """Return the folder in which a pattern begins to match."""
    start = _GLOB.split(pattern, maxsplit=1)[0]
    return start[: start.rfind("/") + 1] or "."


def _with_matches(words: Sequence[str], patterns: frozenset[int], folder: str) -> tuple[str, ...]:
    argv: list[str] = []
    matched = 0
    entries = _Entries(folder)
    for at, word in enumerate(words):
        matches = entries.matching(word) if at in patterns else []
        matched += len(matches)
        argv += matches or [word]
    # `--include=*.py` is meant for the program, not as the name of files.
    if not matched and any(not words[at].startswith("-") for at in patterns):
        raise NotPlain("a file pattern matches nothing, so what it will match is not known")
    if matched > _MAX_MATCHES:
        raise NotPlain(f"the file patterns match more than {_MAX_MATCHES} files")
    return tuple(argv)


class _Entries:
    """Matches patterns in the files below a folder."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._left = _MAX_ENTRIES

    def matching(self, pattern: str) -> list[str]:
        start = start_of(pattern) if "/" in _GLOB.split(pattern, maxsplit=1)[0] else ""
        parts = pattern[len(start) :].split("/")
        if (
            ".." in pattern.split("/")
            or "" in parts[:-1]
            or any(part[:1] == "." and _GLOB.search(part) for part in parts)
        ):
            raise NotPlain("a file pattern could match hidden files, or lead out of the folder")
        paths = [start]
        for index, part in enumerate(parts):
            is_last = index == len(parts) - 1
            paths = [match for before in paths for match in self._step(before, part, is_last=is_last)]
        return paths

    def _step(self, before: str, part: str, *, is_last: bool) -> Iterator[str]:
        folder = os.path.join(self._folder, before)
        end = "" if is_last else "/"
        if not _GLOB.search(part):
            if os.path.lexists(os.path.join(folder, part)):
                yield f"{before}{part}{end}"
            return
        try:
            with os.scandir(folder) as entries:
                for entry in sorted(self._counted(entries), key=lambda entry: entry.name):
                    if _BY_LETTER.search(part) and not entry.name.isascii():
                        raise NotPlain("what ? matches in the names of these files depends on the language setting")
                    if entry.name[0] != "." and fnmatchcase(entry.name, part) and (is_last or entry.is_dir()):
                        yield f"{before}{entry.name}{end}"
        except OSError:
            return

    def _counted(self, entries: Iterator["os.DirEntry[str]"]) -> Iterator["os.DirEntry[str]"]:
        for entry in entries:
            self._left -= 1
            if self._left < 0:
                raise NotPlain(f"the file patterns look through more than {_MAX_ENTRIES} files")
            yield entry
