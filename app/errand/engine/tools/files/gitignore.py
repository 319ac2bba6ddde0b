r"""`.gitignore` files: which paths a walk skips. `git_excludes.py` finds the files that lie elsewhere.

The files come from untrusted repositories, so their size is bounded, and nothing backtracks: the rules of a file are
one nondeterministic automaton, run bit-parallel (Shift-And of Baeza-Yates and Gonnet, 1992). Bit n of a state is set
if everything before position n has matched. The state of each folder is kept, so a path costs only its last name.

Patterns match bytes and are read as in git's wildmatch.c. But `**` spans folders only between slashes, as git
documents it; git itself also does in `a/b**/c` and `a/**\/c`.
"""

import os
import re
import string
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from errand.engine.tools.files.git_excludes import repository_excludes
from errand.system.regular_file import read_regular

_NAME = ".gitignore"
# Bounds for one path, over all nested files; a file or a rule beyond them has no effect.
_MAX_FILES = 20
_MAX_BYTES = 80_000
_MAX_RULES = 2_000
# Bounds for one rule, in bytes, and for one file.
_MAX_RULE_LENGTH = 100
_MAX_BRACKETS = 64  # different ones

_BOM = b"\xef\xbb\xbf"
_SLASH = ord("/")
_STARS = re.compile(rb"\*+")
_LITERALS = re.compile(rb"[^*?[\\]+")
_ITEM = rb"(?:\[:(?P<name>[^\]]*):\]|(?P<low>\\.|[^\\])(?:-(?P<high>\\.|[^\]\\]))?)"
_ITEMS = re.compile(_ITEM, re.DOTALL)
_PLAIN_ITEM = re.sub(rb"\?P<\w+>", b"?:", _ITEM)
_BRACKET = re.compile(rb"\[[!^]?+(?>%b)(?>(?!\])%b)*+\]" % (_PLAIN_ITEM, _PLAIN_ITEM), re.DOTALL)
_ANY = frozenset(range(256)) - {_SLASH}
_VISIBLE = string.ascii_letters + string.digits + string.punctuation
_CLASSES = {
    b"alnum": string.ascii_letters + string.digits,
    b"alpha": string.ascii_letters,
    b"blank": " \t",
    b"cntrl": "".join(map(chr, (*range(32), 127))),
    b"digit": string.digits,
    b"graph": _VISIBLE,
    b"lower": string.ascii_lowercase,
    b"print": _VISIBLE + " ",
    b"punct": string.punctuation,
    b"space": " \t\n\r",
    b"upper": string.ascii_uppercase,
    b"xdigit": string.hexdigits,
}

# A byte, a bracket expression or `?`, "*" for any bytes within a name, or "**" for any number of folders.
_Token: TypeAlias = int | bytes | str


@dataclass(frozen=True, slots=True)
class _Rule:
    is_negated: bool
    only_folders: bool
    tokens: list[_Token]


@dataclass(frozen=True, slots=True)
class _IgnoreFile:
    """The automaton of one file; later rules have higher positions.

    All integers are sets of positions: `moves[byte]` those which the byte advances, `stays` those which any byte of a
    name leaves set (behind a `*` or at a `**`), `skips` those at a `**`, `ends` those behind the last token of a rule.
    """

    size: int
    rules: int
    start: int
    moves: tuple[int, ...]
    stays: int
    skips: int
    ends: int
    folder_ends: int
    negated_ends: int

    def verdict(self, state: int, name: bytes, is_folder: bool) -> bool | None:
        """True to skip the name, False to keep it, None if no rule matches; the last match decides."""
        matched = self._after(state, name) & (self.folder_ends if is_folder else self.ends)
        return not self.negated_ends >> (matched.bit_length() - 1) & 1 if matched else None

    def inside(self, state: int, name: bytes) -> int:
        """Return the state for the names in the folder."""
        state = self._after(state, name)
        state = (state & self.moves[_SLASH]) << 1 | state & self.skips
        return state | (state & self.skips) << 1

    def _after(self, state: int, name: bytes) -> int:
        moves, stays = self.moves, self.stays
        for byte in name:
            state = (state & moves[byte]) << 1 | state & stays
        return state


# The files in force for the names of a folder, the deepest first, each with its state.
_Files: TypeAlias = tuple[tuple[_IgnoreFile, int], ...]


class GitIgnore:
    """The rules for a walk from `root`: those of its repository above it, and those found on the way.

    They are those of `.gitignore` files, of the repository's `info/exclude` and of the file `personal`. A repository
    inside another one has its own rules alone. An explicitly named folder is walked even if rules above it exclude it.
    Files tracked by git are skipped too, as in ripgrep. `has_left_out` is true if anything was skipped.
    """

    def __init__(self, root: Path, personal: Path | None) -> None:
        self.has_left_out = False
        self._personal = personal
        outermost, *inner = map(str, reversed(_repository_folders(root)))
        files = self._inside((), outermost)
        for folder in inner:
            if _leaves_out(files, folder, is_folder=True):
                files = tuple((file, 0) for file, _ in files)  # they match nothing more, but count for the bounds
            files = self._inside(files, folder)
        # The folders from `root` down to that of the last path. A walk does not come back to the others.
        self._above = [(str(root), files)]
        # Those of the last path: most have the same folder.
        self._folder: str = str(root)
        self._in_force = files

    def leaves_out(self, path: str, is_folder: bool) -> bool:
        """True to skip the path. Call it for a folder before its content."""
        folder = os.path.dirname(path)
        if folder != self._folder:
            self._folder, self._in_force = folder, self._files_for(folder)
        is_left_out = bool(self._in_force) and _leaves_out(self._in_force, path, is_folder)
        self.has_left_out |= is_left_out
        return is_left_out

    def _files_for(self, folder: str) -> _Files:
        while not (folder + os.sep).startswith(os.path.join(self._above[-1][0], "")):
            self._above.pop()
        above, files = self._above[-1]
        if above != folder:
            files = self._inside(self._files_for(os.path.dirname(folder)), folder)
            self._above.append((folder, files))
        return files

    def _inside(self, files: _Files, folder: str) -> _Files:
        """Return the rules for the names in the folder; the deeper a file, the earlier it is, and the last ones are
        git's own."""
        name = os.fsencode(os.path.basename(folder))
        files = tuple((file, file.inside(state, name)) for file, state in files)
        if os.path.lexists(os.path.join(folder, ".git")):
            files = _with((), self._personal) if self._personal is not None else ()
            files = _with(files, repository_excludes(Path(folder)))
        return _with(files, Path(folder, _NAME), follow_links=False)


def _repository_folders(root: Path) -> list[Path]:
    """Return the folder and its parents up to the root of its repository; outside of one only the folder."""
    above: list[Path] = []
    for folder in (root, *root.parents):
        above.append(folder)
        if os.path.lexists(folder / ".git"):
            return above
    return [root]


def _leaves_out(files: _Files, path: str, is_folder: bool) -> bool:
    name = os.fsencode(os.path.basename(path))
    verdicts = (file.verdict(state, name, is_folder) for file, state in files)
    return next((verdict for verdict in verdicts if verdict is not None), False)


def _with(files: _Files, path: Path, *, follow_links: bool = True) -> _Files:
    """Return the files with this one first: it takes precedence over them."""
    rules_left = _MAX_RULES - sum(file.rules for file, _ in files)
    if not rules_left or len(files) == _MAX_FILES:
        return files
    try:
        left = _MAX_BYTES - sum(file.size for file, _ in files)
        text = read_regular(path, left, follow_links=follow_links)
    except OSError:
        return files
    own = _compiled(text, rules_left)
    return ((own, own.start), *files)


def _compiled(text: bytes, most_rules: int) -> _IgnoreFile:
    all_lines = (line.removesuffix(b"\r") for line in text.removeprefix(_BOM).split(b"\n"))
    lines = list(islice((line for line in all_lines if line and not line.startswith(b"#")), most_rules))
    rules = list(_rules(lines))
    token_positions: defaultdict[_Token, list[int]] = defaultdict(list)
    starts: list[int] = []
    ends: list[int] = []
    position = 0
    for rule in rules:
        starts.append(position)
        for token in rule.tokens:
            token_positions[token].append(position)
            position += token != "*"
        ends.append(position)
        position += 1
    sets = {token: _bits(positions, position) for token, positions in token_positions.items()}
    moves = [sets.get(byte, 0) for byte in range(256)]
    for token, positions in sets.items():
        for byte in _members(token) if isinstance(token, bytes) else ():
            moves[byte] |= positions
    skips, start = sets.get("**", 0), _bits(starts, position)
    return _IgnoreFile(
        size=len(text),
        rules=len(lines),
        start=start | (start & skips) << 1,
        moves=tuple(moves),
        stays=skips | sets.get("*", 0),
        skips=skips,
        ends=_bits((end for end, rule in zip(ends, rules, strict=True) if not rule.only_folders), position),
        folder_ends=_bits(ends, position),
        negated_ends=_bits((end for end, rule in zip(ends, rules, strict=True) if rule.is_negated), position),
    )


def _bits(positions: Iterable[int], size: int) -> int:
    data = bytearray(size // 8 + 1)
    for position in positions:
        data[position >> 3] |= 1 << (position & 7)
    return int.from_bytes(data, "little")


def _rules(lines: Iterable[bytes]) -> Iterator[_Rule]:
    brackets: set[_Token] = set()
    for line in lines:
        bare = line.rstrip(b" ")
        is_escaped = (len(bare) - len(bare.rstrip(b"\\"))) % 2  # the first of the blanks
        bare = line[: len(bare) + is_escaped]
        tokens = _tokens(bare.removeprefix(b"!").removesuffix(b"/")) if len(bare) <= _MAX_RULE_LENGTH else None
        if tokens is None:
            continue
        more = brackets.union(token for token in tokens if isinstance(token, bytes))
        if len(more) <= _MAX_BRACKETS:
            brackets = more
            yield _Rule(bare.startswith(b"!"), bare.endswith(b"/"), tokens)


def _tokens(pattern: bytes) -> list[_Token] | None:
    """Return None if the pattern matches nothing. Without a slash it matches a name in any folder."""
    is_path = b"/" in pattern
    pattern = pattern.removeprefix(b"/")
    tokens: list[_Token] = [] if is_path else ["**"]
    at = 0
    while at < len(pattern):
        if stars := _STARS.match(pattern, at):
            at, start = stars.end(), at
            if not (is_path and at - start > 1 and _is_alone(pattern, start, at)):
                tokens.append("*")
                continue
            if tokens[-1:] != ["**"]:
                tokens.append("**")
            if at == len(pattern):
                tokens.append("*")  # the content, not the folder itself
            at += 1
        elif literals := _LITERALS.match(pattern, at):
            tokens += literals[0]
            at = literals.end()
        elif pattern.startswith(b"?", at):
            tokens.append(b"?")
            at += 1
        elif bracket := _BRACKET.match(pattern, at):
            tokens.append(bracket[0])
            at = bracket.end()
        elif pattern.startswith(b"\\", at) and at + 1 < len(pattern):
            tokens.append(pattern[at + 1])
            at += 2
        else:
            return None  # a bracket that is not closed, or a backslash at the end
    return tokens


def _is_alone(pattern: bytes, start: int, end: int) -> bool:
    return (not start or pattern[start - 1] == _SLASH) and (end == len(pattern) or pattern[end] == _SLASH)


def _members(expression: bytes) -> frozenset[int]:
    """Return the bytes that a bracket expression or `?` matches."""
    if expression == b"?":
        return _ANY
    is_negated = expression[1:2] in (b"!", b"^")
    letters: set[int] = set()
    for item in _ITEMS.finditer(expression, 1 + is_negated, len(expression) - 1):
        if item["name"] is None:
            low, high = item["low"], item["high"] or item["low"]
            letters.update(low[-1:], range(low[-1], high[-1] + 1))  # [c-a] matches c
        elif item["name"] in _CLASSES:
            letters.update(_CLASSES[item["name"]].encode())
        else:
            return frozenset()
    return _ANY - letters if is_negated else _ANY & letters
