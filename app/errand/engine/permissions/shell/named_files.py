"""The files that a command line names, or may change: words and redirects as they are written.

Tolerant like the scanner, and bounded. It decides nothing: naming too much costs time, naming too little leaves a
change that cannot be undone.
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path

from errand.engine.permissions.shell.nested_code import SHELLS, FoundCommand, find_commands, is_interpreter
from errand.engine.permissions.shell.scanner import UNKNOWN
from errand.system.regular_file import read_beginning

_MAX_FILES = 400
# Looked at for one pattern.
_MAX_ENTRIES = 5_000
_MAX_NAME_LENGTH = 1_024
_PATTERN = re.compile(r"[*?\[]")
_WRITES = frozenset((">", ">>", ">|", "&>", "&>>", "<>", ">&"))
# Programs that change none of the files that they name.
_READERS = frozenset(
    {"cat", "grep", "egrep", "fgrep", "rg", "ag", "head", "tail", "wc", "ls", "tree", "stat", "file", "diff", "cmp"}
    | {"comm", "cut", "du", "df", "echo", "printf", "test", "[", "[[", "cd", "pushd", "less", "more", "jq", "nl", "od"}
    | {"xxd", "hexdump", "strings", "md5sum", "sha1sum", "sha256sum", "which", "pytest", "export", "source", "."}
)
# Programs that give the names of others to the next one.
_PASSES_NAMES = frozenset(("xargs", "parallel", "while", "read", "for"))
# Programs that change whole folders that they name.
_CHANGES_FOLDERS = frozenset(("rm", "rmdir", "mv", "trash", "trash-put", "gio"))
_PUTS_INTO_FOLDERS = frozenset(("mv", "cp", "install", "ln", "rsync"))
_GIT_CHANGES = frozenset(("checkout", "restore", "rm", "mv", "clean", "reset", "apply", "am"))
# The names of files in a diff.
_DIFF_NAME = re.compile(r"^(?:---|\+\+\+) ([^\t\n]{1,1000})", re.MULTILINE)
_MAX_DIFF_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class NamedPath:
    """An absolute path, which may not exist. `with_content`: if it is a folder, the command may change all of it."""

    path: str
    with_content: bool = False


def named_files(line: str, folder: str, home: str) -> tuple[NamedPath, ...]:
    """Return the files that the line may change when it runs in `folder`: at most some hundreds, each once."""
    commands = find_commands(line, home, folder, lambda _: False).commands
    passes_names = any(not _PASSES_NAMES.isdisjoint(command.argv) for command in commands)
    files: dict[str, bool] = {}
    everything = (
        file for command in commands for file in _of_command(command, command.folder or folder, home, passes_names)
    )
    for file in islice((*everything, *_of_diffs(commands, line, folder)), 4 * _MAX_FILES):
        files[file.path] = files.get(file.path, False) or file.with_content
    return tuple(NamedPath(path, with_content) for path, with_content in islice(files.items(), _MAX_FILES))


def mentioned_files(line: str, folder: str, home: str) -> tuple[str, ...]:
    """Return the files that the line names when it runs in `folder`, also those that it only reads, each once.

    What stands behind a `cd` to a folder that is not known is left out.
    """
    commands = find_commands(line, home, folder, lambda _: False).commands
    files = (
        file.path
        for command in commands
        if command.folder
        for word in (*command.argv, *(target for _, target in command.redirects))
        for file in _paths(word, command.folder, home, with_content=False)
    )
    return tuple(dict.fromkeys(islice(files, _MAX_FILES)))


def _of_command(command: FoundCommand, folder: str, home: str, passes_names: bool) -> Iterator[NamedPath]:
    for operator, target in command.redirects:
        if operator in _WRITES and not target.isdecimal():
            yield from _paths(target, folder, home, with_content=False)
    program, arguments = command.program, list(command.argv[1:])
    if program in _READERS and not passes_names:
        return
    if program == "git":
        if _GIT_CHANGES.isdisjoint(arguments):
            return
    elif program in SHELLS or is_interpreter(program):
        script = next((at for at, word in enumerate(arguments) if not word.startswith("-")), None)
        if script is not None and arguments.pop(script) in _READERS and "-m" in arguments:
            return
    with_content = program == "git" or not _CHANGES_FOLDERS.isdisjoint(command.argv)
    named: list[str] = []
    for word in islice(arguments, _MAX_FILES):
        for text in _texts(word):
            several = list(_paths(text, folder, home, with_content=with_content))
            named += (file.path for file in several)
            yield from several
    if named and not _PUTS_INTO_FOLDERS.isdisjoint(command.argv) and os.path.isdir(named[-1]):
        yield from (NamedPath(os.path.join(named[-1], os.path.basename(path))) for path in named[:-1])


def _texts(word: str) -> set[str]:
    """Return the word, and what stands behind a flag in it."""
    value = word.partition("=")[2]
    if word.startswith("-"):
        return {value, "" if word.startswith("--") else word[2:]} - {""}
    return {word, value} - {""}


def _paths(text: str, folder: str, home: str, *, with_content: bool) -> Iterator[NamedPath]:
    if len(text) > _MAX_NAME_LENGTH or "\0" in text or "\n" in text or UNKNOWN in text:
        return
    path = os.path.normpath(os.path.join(folder, home + text[1:] if text == "~" or text.startswith("~/") else text))
    if _PATTERN.search(text) and not os.path.lexists(path):
        yield from (NamedPath(match, with_content) for match in _matches(path))
    else:
        yield NamedPath(path, with_content)


def _matches(pattern: str) -> Iterable[str]:
    """Return the files that match a pattern in the last part of a path, as far as a short look finds them."""
    parent, name = os.path.split(pattern)
    if _PATTERN.search(parent):
        return ()
    try:
        with os.scandir(parent) as entries:
            names = [entry.name for entry in islice(entries, _MAX_ENTRIES) if not entry.name.startswith(".")]
    except OSError:
        return ()
    return islice(
        (os.path.join(parent, filename) for filename in sorted(names) if fnmatchcase(filename, name)), _MAX_FILES
    )


def _of_diffs(commands: Iterable[FoundCommand], line: str, folder: str) -> Iterator[NamedPath]:
    """Yield the files that a diff names, in the line itself or in a file that `patch` or `git apply` gets."""
    for command in commands:
        if command.program != "patch" and not (command.program == "git" and {"apply", "am"} & set(command.argv)):
            continue
        start = command.folder or folder
        texts = [line]
        for word in (*command.argv[1:], *(target for operator, target in command.redirects if operator == "<")):
            texts += _read(os.path.join(start, word)) if not word.startswith("-") and "\0" not in word else ()
        for text in texts:
            for name in islice(_DIFF_NAME.findall(text), _MAX_FILES):
                for path in {name.strip(), name.strip().partition("/")[2]} - {"", "/dev/null"}:
                    yield NamedPath(os.path.normpath(os.path.join(start, path)))


def _read(path: str) -> Iterable[str]:
    try:
        return (read_beginning(Path(path), _MAX_DIFF_BYTES).decode(errors="replace"),)
    except OSError:
        return ()
