"""Danger outside the hard floor: asked about in red, never remembered, and not lifted by a grant."""

import re
from collections.abc import Sequence
from itertools import pairwise

from app.engine.permissions.programs.git import git_call
from app.engine.permissions.shell.nested_code import SHELLS, FoundCommand, is_interpreter

_ALWAYS = frozenset(
    {"sudo", "doas", "su", "pkexec", "dd", "shred", "wipefs", "fdisk", "parted", "mkswap", "shutdown", "reboot"}
    | {"poweroff", "halt", "iptables", "crontab", "useradd", "userdel", "passwd", "mount", "umount", "diskutil"}
)
_ENDS = frozenset(("kill", "pkill", "killall"))
_FETCHERS = frozenset(("curl", "wget", "fetch", "iwr"))
_RUNS_FILES = frozenset(("-delete", "-exec", "-execdir", "-ok", "-okdir", "-fprint", "-fprintf", "-fprint0", "-fls"))
_EXECUTES = frozenset(("-exec", "-execdir"))
_PRINTS = frozenset(
    {"grep", "egrep", "fgrep", "ls", "cat", "head", "tail", "wc", "stat", "file", "dirname", "basename", "echo", "du"}
    | {"md5sum", "sha1sum", "sha256sum"}
)
# Flags by which a program runs another, or writes or deletes what its words do not show.
_DANGEROUS_TEXT = {
    "rg": "--pre --hostname-bin",
    "sort": "-o --output --compress-program",
    "tar": "--to-command --checkpoint-action -I --use-compress-program --rsh-command -F",
    "sed": "-i --in-place",
    "man": "-P --pager -H --html",
    "rsync": "-e --rsh --delete --rsync-path",
    "ssh": "-o -F",
    "scp": "-o -F -S",
    "fd": "-x -X --exec --exec-batch",
    "fdfind": "-x -X --exec --exec-batch",
    "terraform": "destroy -auto-approve -destroy",
    "kubectl": "delete drain",
    "cargo": "--config -Z",
    "go": "-toolexec -exec -o -ldflags -overlay -vettool -C -modfile -gcflags -asmflags",
    "npm": "--script-shell --node-options -g --global --prefix publish unpublish",
    "pip": "--target --index-url --extra-index-url --prefix --root",
    "docker": "--privileged prune rm rmi",
    "pytest": "-p -c --config-file --rootdir --confcutdir -o --override-ini --pdb --pdbcls --trace --basetemp "
    "--pastebin --import-mode",
    "mypy": "--python-executable --install-types --config-file --custom-typeshed-dir",
    "pylint": "--init-hook --load-plugins --rcfile",
    "flake8": "--config --append-config",
    "eslint": "-c --config --rulesdir --plugin --parser --resolve-plugins-relative-to -o -f --format --output-file",
    "prettier": "--config --plugin --plugin-search-dir",
    "jest": "-c --config --globalSetup --globalTeardown --setupFiles --setupFilesAfterEnv --runner --testRunner "
    "--transform --reporters --resolver --testEnvironment --rootDir",
    "vitest": "-c --config --globals-setup --reporter --environment -r --root",
    "mocha": "-r --require --config -R --reporter --ui -u --extension --node-option",
    "tox": "-c --conf -x --override --root --workdir",
    "nox": "-f --noxfile",
    "rspec": "-r --require -I -O --options",
    "phpunit": "-c --configuration --bootstrap --prepend -d --extension",
    "ctest": "-S --script -D --build-and-test --build-makeprogram",
    "gradle": "-I --init-script -b -c -D -P -p -g",
    "mvn": "-D -f --file -s --settings -gs -t",
    "pnpm": "--script-shell -C --dir -g --global",
    "yarn": "--script-shell --cwd --use-yarnrc",
    "bun": "-r --preload --cwd -c --config",
    "pre-commit": "-c --config",
    "make": "-f --file --makefile -C --directory --eval -E -I",
    "git": "--upload-pack --receive-pack --exec -u --output --ext-diff --textconv -O",
}
_DANGEROUS = {name: tuple(flags.split()) for name, flags in _DANGEROUS_TEXT.items()}
# The letters of a word are not flags of their own: long flags have one dash, or values are often attached.
_ONE_DASH = frozenset(("go", "terraform", "find", "mvn", "git"))
# They read more of their words from a file that is named with @.
_READS_WORDS = frozenset(("pytest", "mypy", "pyright", "tsc", "clang-format", "ruff", "black", "pylint", "jest"))
# A variable replaces the programs that a makefile runs.
_TAKES_VARIABLES = frozenset(("make", "gmake", "just", "task", "ninja"))
_VARIABLE = re.compile(r"(?<![\w.-])[A-Za-z_][\w.-]*+[:?+!]*+=")
_GIT_DANGEROUS = ("--open-files-in-pager", "--template", "--config", "--no-verify", "--edit-description", "--no-index")


def danger_in(commands: Sequence[FoundCommand]) -> str | None:
    """The reason for a red warning; None if there is none."""
    for command in commands:
        if command.words and (reason := _danger(command.program, command.words[1:])):
            return reason
    programs = [command.program for command in commands]
    if not _FETCHERS.isdisjoint(programs) and any(_runs_input(command) for command in commands):
        return "runs a program straight from the network"
    return None


def dangerous_flags_of(words: Sequence[str]) -> tuple[str, ...]:
    """The flags of a program for which a remembered permission does not hold."""
    return _DANGEROUS.get(words[0].rpartition("/")[2], ())


def dangerous_flag(words: Sequence[str]) -> str | None:
    """A flag for which a remembered permission does not hold."""
    name, flags = words[0].rpartition("/")[2], _DANGEROUS.get(words[0].rpartition("/")[2], ())
    for word in words[1:]:
        if word == "--":
            break
        plain = word.partition("=")[0]
        for flag in (*flags, *(_GIT_DANGEROUS if name == "git" else ())):
            if _is_short(word, flag, name) or _is_one_of(plain, (flag,)) or (name == "go" and plain == f"-{flag}"):
                return word
        if name == "find" and plain in _RUNS_FILES:
            return word
        if (name in _TAKES_VARIABLES and _VARIABLE.match(word)) or (name in _READS_WORDS and word.startswith("@")):
            return word
    return None


def _is_short(word: str, flag: str, name: str) -> bool:
    """True if a flag of one letter is in a word such as `-qp`, where its value may be attached."""
    if len(flag) != 2 or not word.startswith("-") or word.startswith("--"):
        return False
    return word.startswith(flag) if name in _ONE_DASH else flag[1] in word[1:].partition("=")[0]


def _danger(program: str, words: tuple[str, ...]) -> str | None:
    if program in _ALWAYS or program.startswith(("mkfs", "newfs")):
        return f"{program} changes the system itself"
    if program == "rm" and _has(words, "rRf", "--recursive", "--force"):
        return "deletes without asking"
    if program == "find" and not _RUNS_FILES.isdisjoint(words) and not _only_prints(words):
        return "deletes or runs a program on what it finds"
    if program in ("chmod", "chown", "chgrp") and _has(words, "R", "--recursive"):
        return "changes the rights of many files"
    if program in _ENDS:
        return "ends other programs"
    return _git_danger(words) if program == "git" else None


def _only_prints(words: tuple[str, ...]) -> bool:
    """True if `find` runs a program that prints on what it finds, and does nothing else."""
    runs = [after for word, after in pairwise(words) if word in _EXECUTES]
    return bool(runs) and _PRINTS.issuperset(runs) and not any(word in _RUNS_FILES - _EXECUTES for word in words)


def _git_danger(words: tuple[str, ...]) -> str | None:
    call = git_call(words)
    name, rest = call.words[0] if call.words else "", call.words[1:]
    if name == "push" and (
        _has(rest, "fd", "--force", "--force-with-lease", "--force-if-includes", "--delete", "--mirror", "--prune")
        or any(word.startswith(("+", ":")) for word in rest)
    ):
        return "rewrites what others have"
    if name == "reset" and "--hard" in rest:
        return "throws away uncommitted work"
    if name == "clean" and _has(rest, "f", "--force"):
        return "deletes files git does not know"
    if name == "branch" and _has(rest, "DM", "--force"):
        return "deletes or moves a branch without asking"
    if name == "stash" and rest[:1] in (("drop",), ("clear",)):
        return "throws away stashed work"
    if name in ("filter-branch", "filter-repo", "update-ref"):
        return "rewrites history"
    return "git runs with its configuration changed" if call.unusual in ("-c", "--exec-path", "--config-env") else None


def _has(words: tuple[str, ...], letters: str, *names: str) -> bool:
    flags = [word for word in words if word.startswith("-")]
    short = {letter for flag in flags if not flag.startswith("--") for letter in flag[1:]}
    return not short.isdisjoint(letters) or any(_is_one_of(flag.partition("=")[0], names) for flag in flags)


def _is_one_of(flag: str, names: tuple[str, ...]) -> bool:
    """Programs take a beginning of a long flag for it."""
    return any(flag == name or (len(flag) > 3 and flag.startswith("--") and name.startswith(flag)) for name in names)


def _runs_input(command: FoundCommand) -> bool:
    runs = command.program in SHELLS or is_interpreter(command.program)
    return runs and not [word for word in command.words[1:] if word != "-" and not word.startswith("-")]
