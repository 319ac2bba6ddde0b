"""Programs that run the command that follows among their words, and where it begins."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from errand.engine.permissions.run_time.marked_line import HOME, MARKS, ONE_WORD, STREAM
from errand.engine.permissions.shell.scanner import program_name

_SINGLE = frozenset((ONE_WORD, STREAM, HOME))


@dataclass(frozen=True, slots=True)
class Wrapper:
    """Letters of short flags without and with a value, long flags with a value, and operands before the command."""

    plain: str = ""
    valued: str = ""
    long_valued: frozenset[str] = frozenset()
    operands: int = 0
    assigns: bool = False


_WRAPPERS = {
    "sudo": Wrapper(
        "AbEeHiKknPSsvN", "uUgGhpCDRTtr", frozenset(("--user", "--group", "--chdir", "--host")), assigns=True
    ),
    "doas": Wrapper("nsL", "uC"),
    "env": Wrapper("iv0", "uC", frozenset(("--unset", "--chdir")), assigns=True),
    "nohup": Wrapper(),
    "nice": Wrapper("0123456789", "n", frozenset(("--adjustment",))),
    "ionice": Wrapper("t", "cnpPu", frozenset(("--class", "--classdata"))),
    "setsid": Wrapper("cfw"),
    "exec": Wrapper("cl", "a"),
    "command": Wrapper("p"),
    "builtin": Wrapper(),
    "time": Wrapper("pvaqV", "fo", frozenset(("--format", "--output"))),
    "coproc": Wrapper(),
    "timeout": Wrapper("v", "ks", frozenset(("--kill-after", "--signal")), operands=1),
    "stdbuf": Wrapper("", "ioe", frozenset(("--input", "--output", "--error"))),
    "busybox": Wrapper(),
    "toybox": Wrapper(),
    "chroot": Wrapper(operands=1),
    "flock": Wrapper("sxunoFv", "wE", frozenset(("--timeout", "--wait", "--conflict-exit-code")), operands=1),
    "taskset": Wrapper("ap", operands=1),
    "chrt": Wrapper("abdfimorv", "TPD", operands=1),
    "watch": Wrapper("bcdegtxwC", "n", frozenset(("--interval",))),
    "xargs": Wrapper(
        "0rtpxo", "InLPdaEs", frozenset(("--replace", "--max-args", "--max-procs", "--delimiter", "--arg-file"))
    ),
    "npx": Wrapper("yq", "p", frozenset(("--package",))),
    "bunx": Wrapper(),
    "uvx": Wrapper("q", "p", frozenset(("--from", "--with", "--python"))),
    "caffeinate": Wrapper("dimsu", "tw"),
    "fakeroot": Wrapper(),
    "strace": Wrapper("cCdfFhiqrtTvVwxyYzZk", "abeIoOpPsSuUX", frozenset()),
    "ssh": Wrapper("46AaCfGgKkMNnqsTtVvXxYy", "BbcDEeFIiJLlmOopQRSWw", operands=1),
}

# Programs that run the command after their flags, whichever these are, and those that do so after a subcommand.
_RUNNERS = frozenset(
    {"valgrind", "gdb", "lldb", "prlimit", "numactl", "choom", "setarch", "linux32", "linux64", "xvfb-run"}
    | {"dbus-run-session", "systemd-inhibit", "cpulimit", "torsocks", "proxychains", "proxychains4"}
    | {"chronic", "catchsegv", "eatmydata", "chpst", "softlimit", "catatonit", "tini", "dumb-init"}
)
# The dynamic loader runs the program that it gets: ld-linux-x86-64.so.2, ld-musl-x86_64.so.1, ld.so.
_LOADER = re.compile(r"ld[\w-]{0,40}\.so[\d.]{0,8}")
_RUNNER_SUBCOMMANDS = {
    "exec": frozenset(("bundle", "npm", "pnpm", "yarn", "bun", "mise", "asdf", "direnv", "rbenv", "pyenv", "opam")),
    "run": frozenset(("conda", "mamba", "micromamba", "rye", "pdm", "hatch", "pipenv")),
    "dlx": frozenset(("pnpm", "yarn")),
    "stat": frozenset(("perf",)),
    "record": frozenset(("perf",)),
}


class Uncertain(Exception):
    """The beginning of the inner command depends on words that are known only at run time."""


def inner_command(words: Sequence[str]) -> list[str]:
    """Return the command that the wrapper `words[0]` runs, empty if it names none. Raises `Uncertain`."""
    has_marks = any(map(is_marked, words[1:]))
    wrapper = _WRAPPERS.get(program_name(words[0]))
    if wrapper is None:
        if has_marks:
            raise Uncertain
        return []
    at = _after_flags(words, wrapper)
    for operand in words[at : at + wrapper.operands]:
        _check_one_word(operand)
    return list(words[at + wrapper.operands :])


def _after_flags(words: Sequence[str], wrapper: Wrapper) -> int:
    at = 1
    while at < len(words):
        word = words[at]
        if word == "--":
            return at + 1
        if wrapper.assigns and (word == "-" or ("=" in word and not is_marked(word.partition("=")[0]))):
            at += 1
        elif not word.startswith("-") or word == "-":
            return at
        else:
            takes_value = _takes_value(word, wrapper, words[at + 1 :])
            if takes_value:
                _check_one_word(*words[at + 1 : at + 2])
            at += 1 + takes_value
    return at


def _takes_value(flag: str, wrapper: Wrapper, rest: Sequence[str]) -> bool:
    _check_one_word(flag)
    if flag.startswith("--"):
        return flag in wrapper.long_valued
    for number, letter in enumerate(flag[1:], start=2):
        if letter in wrapper.valued:
            return number == len(flag)
        if letter not in wrapper.plain:
            if any(map(is_marked, rest)):
                raise Uncertain
            return False
    return False


def index_of_command(name: str, words: Sequence[str]) -> int:
    """Return the index of the words behind a program that runs another; 0 if it runs none."""
    if name in _RUNNERS or _LOADER.fullmatch(name):
        return 1
    return 2 if len(words) > 1 and name in _RUNNER_SUBCOMMANDS.get(words[1], ()) else 0


def xargs_placeholder(flags: Sequence[str]) -> str:
    """Return the text that xargs replaces by a line of its input."""
    for at, flag in enumerate(flags):
        if flag == "-I" and at + 1 < len(flags):
            return flags[at + 1]
        if flag.startswith(("-I", "--replace=")):
            return flag.removeprefix("-I").removeprefix("--replace=")
        if flag in ("-i", "--replace"):
            return "{}"
    return ""


def is_marked(word: str) -> bool:
    """Return True if a part of the word is known only at run time."""
    return not MARKS.isdisjoint(word)


def is_several(word: str) -> bool:
    """Return True if the word may become any number of words."""
    return not (MARKS - _SINGLE).isdisjoint(word)


def _check_one_word(*words: str) -> None:
    if any(map(is_several, words)):
        raise Uncertain
