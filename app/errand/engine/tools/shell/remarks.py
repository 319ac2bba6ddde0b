"""What the end of a command means, in words: signals, missing programs, and input that nobody typed."""

import os
import re

from errand.text.notice_text import exit_text, signal_text

_KILLED = 9
_FROM_OUTSIDE = "from outside; that is also how the system ends a command when memory runs out"
_MEANINGS = {
    126: "found, but it cannot be run: a folder, a file without the right to be executed (chmod +x), or one for "
    "another kind of machine",
    127: "a program was not found: check its name, install it, or give its path",
}
# By which a shell reports that a program was killed: 128 and the signal. Programs use others of these codes themselves.
_BY_SIGNAL = frozenset((1, 2, 3, 4, 6, 7, 8, 9, 11, 13, 14, 15, 24, 25, 31))

_ANSWER = "in the command (an option, a pipe, a here-document), or run it with background and pty and type with action "
NOBODY_TYPES = f"[nobody types here: input is empty, and there is no terminal. Give what it asks for {_ANSWER}input]"
_NO_PASSWORD = (
    "[nobody types a password here, or yes to the key of an unknown host. Use what works without asking (keys, sudo "
    "rules, a token in the settings of the program), or ask the person to do it]"
)
_EMPTY_INPUT = "[it read its program from its input, which is empty: give it a file, or code by an option such as -c]"
# How programs say that they got no input, or that they have no terminal.
_INPUT_SIGNS = re.compile(
    r"EOFError|EOF when reading|/dev/tty|not a (?:tty|TTY|terminal)|Inappropriate ioctl for device|failed tty get|"
    r"(?:must be|requires?|needs?) (?:run (?:from|in|on) )?an? (?:interactive )?(?:tty|terminal)|[Nn]o tty present|"
    r"cannot open (?:your )?terminal|[Nn]ot running interactively|stdin is not|[Ee]rror opening terminal"
)
_PASSWORD_SIGNS = re.compile(
    r"a (?:terminal|password) is required|askpass|terminal prompts disabled|Host key verification failed|"
    r"Permission denied \([^)]*(?:publickey|password|keyboard)|[Aa]uthentication token manipulation|su: Authentication"
)
# Without arguments they read a program, or a text, from their input.
_READERS = frozenset(
    (
        *(
            "python",
            "ipython",
            "pypy",
            "node",
            "deno",
            "bun",
            "irb",
            "ruby",
            "php",
            "perl",
            "lua",
            "ghci",
            "julia",
            "R",
        ),
        *("scala", "bash", "sh", "zsh", "fish", "psql", "sqlite", "mysql", "mongosh", "redis-cli", "bc", "gdb"),
    )
)
# Programs for the whole screen. They do not look whether there is one, and wait for keys.
_FULL_SCREEN = frozenset(
    (
        *(
            "vi",
            "vim",
            "nvim",
            "view",
            "vimdiff",
            "nano",
            "pico",
            "emacs",
            "joe",
            "jed",
            "micro",
            "mcedit",
            "hx",
            "kak",
        ),
        *("mc", "tig", "lazygit", "ranger", "nnn", "htop", "btop", "visudo"),
    )
)
# Editors of scripts: `vim -es`, `emacs --batch`, `nvim --headless -c …`, `vim +wq`.
_SCRIPTED = re.compile(
    r"\s(?:-[a-zA-Z]*[esESc]|-?-batch|--headless|--script|--version|--help|--cmd|--?[\w-]*daemon|\+)"
)


def exit_remark(exit_code: int) -> str:
    """`[killed by SIGSEGV (11)]`, `[exit code 127: …]`; empty for 0."""
    if not exit_code:
        return ""
    number = -exit_code if exit_code < 0 else exit_code - 128
    if exit_code < 0:
        why = _FROM_OUTSIDE if number == _KILLED else ""
    elif number in _BY_SIGNAL:
        why = f"a program was killed by {signal_text(number)}" + (f", {_FROM_OUTSIDE}" if number == _KILLED else "")
    else:
        why = _MEANINGS.get(exit_code, "")
    return f"[{exit_text(exit_code)}{f': {why}' if why else ''}]"


def input_remark(line: str, exit_code: int | None, output: str) -> str:
    """Return how to go on after a command that read or asked for what nobody typed; empty for others."""
    if exit_code == 0:
        return _EMPTY_INPUT if not output and _reads_its_input(line) else ""
    if _PASSWORD_SIGNS.search(output):
        return _NO_PASSWORD
    return NOBODY_TYPES if _INPUT_SIGNS.search(output) else ""


def _reads_its_input(line: str) -> bool:
    name, *options = line.split(maxsplit=2) or [""]
    return os.path.basename(name).rstrip("0123456789.") in _READERS and options in ([], ["-i"])


def waits_for_keys(command_line: str) -> str:
    """Return the name of a program for the whole screen that waits for keys; empty for others."""
    name = os.path.basename(command_line.partition(" ")[0])
    return name if name in _FULL_SCREEN and not _SCRIPTED.search(command_line) else ""


def waited_for_keys(name: str) -> str:
    return (
        f"{name} waited for keys, which nobody types: it was ended. To change a file use the file tools, to read one "
        "too or cat, and for git the options that need no editor (-m, --no-edit). If it must be this program, run it "
        "with background and pty."
    )
