"""Whether the words of a command, of which some are known only at run time, may begin with those of a deny rule."""

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from errand.engine.permissions.run_time.marked_line import MARKS, STREAM
from errand.engine.permissions.run_time.wrappers import is_marked, is_several
from errand.engine.permissions.shell.scanner import program_name

_PATTERN_LETTERS = frozenset("*?[")
# Flags before a subcommand that take a value; of other programs it is not known.
_VALUED = {
    "git": frozenset(
        ("-C", "-c", "--git-dir", "--work-tree", "--exec-path", "--namespace", "--config-env", "--attr-source")
    ),
    "kubectl": frozenset(("-n", "--namespace", "--context", "--cluster", "--kubeconfig", "-s", "--server", "--user")),
    "helm": frozenset(("-n", "--namespace", "--kube-context", "--kubeconfig")),
    "docker": frozenset(("-H", "--host", "-c", "--context", "--config", "-l", "--log-level")),
    "npm": frozenset(("--prefix", "-C", "-w", "--workspace", "--registry", "--userconfig")),
    "pnpm": frozenset(("-C", "--dir", "-F", "--filter")),
    "yarn": frozenset(("--cwd",)),
    "cargo": frozenset(("-C", "-Z", "--config", "--color", "--manifest-path", "-p", "--package")),
    "gh": frozenset(("-R", "--repo", "--hostname")),
    "aws": frozenset(("--profile", "--region", "--output", "--query", "--endpoint-url")),
    "make": frozenset(("-C", "-f", "-I", "-o", "-W", "--directory", "--file")),
}
_ValueState = Literal["none", "may", "must"]
_State = tuple[int, _ValueState, bool]


def is_unknown_program(word: str) -> bool:
    """Return True if nobody can say which program this word names."""
    if word in ("[", "[["):
        return False
    folder, _, name = word.rpartition("/")
    if is_marked(name) or is_several(folder) or "$" in word or "`" in word or word.startswith("{}"):
        return True
    return is_pattern(word) or STREAM in folder


def is_pattern(word: str) -> bool:
    """Return True for a file pattern, or braces that the scanner did not expand."""
    has_braces = "{" in word and ("," in word or ".." in word) and "}" in word
    return has_braces or not _PATTERN_LETTERS.isdisjoint(word)


def may_begin(argv: Sequence[str], prefix: Sequence[str]) -> bool:
    """Return True if words that are known only at run time can make the command begin with the prefix."""
    name = program_name(argv[0])
    if name.startswith("git-") and program_name(prefix[0]) == "git":
        name, argv = "git", ("git", name.removeprefix("git-"), *argv[1:])
    if name != program_name(prefix[0]) or len(prefix) < 2:
        return False
    # How many words of the prefix were met, whether a flag's value follows, and whether a mark was needed for it.
    states: set[_State] = {(1, "none", False)}
    for word in argv[1:]:
        if is_several(word) or is_pattern(word):
            return bool(states)
        states = {after for state in states for after in _after(word, state, prefix[state[0]], name)}
        if any(met == len(prefix) and is_guess for met, _, is_guess in states):
            return True
        states = {state for state in states if state[0] < len(prefix)}
    return False


def _after(word: str, state: _State, expected: str, name: str) -> Iterator[_State]:
    met, value, is_guess = state
    if value != "none":
        yield met, "none", is_guess
    if value == "must":
        return
    if is_marked(word):
        if _may_be(word, expected):
            yield met + 1, "none", True
        if word[0] in MARKS or word[0] == "-":
            yield met, "none", True
    elif word == expected:
        yield met + 1, "none", is_guess
    elif word.startswith(("-", "+")):
        has_value = word in _VALUED.get(name, ())
        yield met, "must" if has_value else "none" if name == "git" else "may", is_guess


def _may_be(word: str, literal: str) -> bool:
    pieces = re.split("[" + "".join(MARKS) + "]", word)
    return re.fullmatch(".*".join(map(re.escape, pieces)), literal, re.DOTALL) is not None
