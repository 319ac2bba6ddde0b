"""PowerShell and cmd: their hard floor and the user's deny rules. Everything else is asked about."""

import re
from base64 import b64decode
from collections.abc import Sequence
from itertools import pairwise

from errand.engine.permissions.command_rules import CommandRule
from errand.engine.permissions.verdict import Finding, ask, deny

NAMES = frozenset(("powershell", "pwsh", "cmd"))
# These too run a text among their words.
_RUN_TEXT = NAMES | {"iex", "invoke-expression", "start-process", "saps", "start", "icm", "invoke-command"}
_ENCODED = re.compile(r"-e(?:c|n[a-z]{0,12})?", re.IGNORECASE)
_SPLIT = re.compile(r"[;|&(){}\n\r]++")
_WORD = re.compile(r"""(?:"[^"]*+"?|'[^']*+'?|[^\s"']++)++""")
_MAX_NESTING = 20
_DELETES = frozenset(("remove-item", "ri", "rm", "rmdir", "del", "erase", "rd"))
_FORMATS = frozenset(("format-volume", "clear-disk", "initialize-disk", "remove-partition", "reset-physicaldisk"))
_RECURSES = re.compile(
    r"-r(?:e(?:c(?:u(?:r(?:s(?:e)?)?)?)?)?)?(?::\$true)?|(?:/[a-z]){0,5}/s(?:/[a-z]){0,5}|-[rf]{2}|-recursive",
    re.IGNORECASE,
)
_ROOT = re.compile(
    r"(?:[a-z]:|\\\\\?\\[a-z]:|%systemdrive%|\$env:systemdrive|/|~|\$home|\$env:userprofile|%userprofile%|\$env:homepath"
    r"|\$env:systemroot|%systemroot%|%windir%|\$env:windir"
    r"|[a-z]:[\\/](?:windows|users|program files(?: \(x86\))?|programdata)(?:[\\/]system32)?)?[\\/]*(?:\*(?:\.\*)?)?",
    re.IGNORECASE,
)
_FORK_BOMB = re.compile(r"%0\s*\|\s*%0|:\w+\s*\n?\s*start\s+\S*%0", re.IGNORECASE)


def judge(line: str, rules: Sequence[CommandRule]) -> Finding:
    """Judge a command line of PowerShell or cmd."""
    if _FORK_BOMB.search(line[:10_000]):
        return deny("hard floor", "a fork bomb would stop this computer")
    waiting, nested = [line], 0
    while waiting:
        before: list[str] = []
        for part in _SPLIT.split(waiting.pop().replace("`\n", "").replace("^\n", "")):
            tokens = _WORD.findall(part)
            argv = [_bare(word) for word in tokens]
            if finding := _of_part(argv, before, rules, line):
                return finding
            if argv and _name(argv[0]) in _RUN_TEXT and nested < _MAX_NESTING:
                nested += 1
                waiting += [word for word in argv if " " in word]
                waiting += [_decoded(text) for flag, text in pairwise(argv) if _ENCODED.fullmatch(flag)]
            before = argv
    return ask("program", "commands of this shell are always asked about")


def _of_part(words: list[str], before: list[str], rules: Sequence[CommandRule], line: str) -> Finding | None:
    """Judges one command; `before` are the words of the one before it, which may be piped into it."""
    for at, word in enumerate(words):
        name = _name(word)
        acts = name in _DELETES or name in _FORMATS
        if (at == 0 or acts) and (reason := _floor(name, words[at + 1 :], before)):
            return deny("hard floor", reason)
        if any(_matches(rule, words[at : at + len(rule.argv)], line) for rule in rules):
            return deny("your deny rule", "you denied this")
        if acts:
            return None
    if words[:1] == ["clean"] and any(_name(word) == "select" for word in before):
        return deny("hard floor", "it would format a disk")
    return None


def _floor(name: str, words: list[str], before: list[str]) -> str | None:
    if name in _FORMATS or (name == "format" and any(re.fullmatch(r"[a-zA-Z]:", word) for word in words)):
        return "it would format a disk"
    lowered = [word.lower() for word in words]
    operands = [word for word in words if not word.startswith("-") and not re.fullmatch(r"(?:/[a-zA-Z])+", word)]
    hits_root = any(word and _ROOT.fullmatch(word) for word in operands or before)
    if name in _DELETES and hits_root and any(_RECURSES.fullmatch(word) for word in words):
        return "it would delete the system or the home directory"
    if name in ("icacls", "takeown", "cacls") and hits_root and not {"/t", "/r"}.isdisjoint(lowered):
        return "it would change the rights of the whole system"
    return None


def _decoded(text: str) -> str:
    """Return a command as PowerShell takes it in Base64; empty if it is none."""
    try:
        return b64decode(text, validate=True).decode("utf-16-le")
    except ValueError:
        return ""


def _name(word: str) -> str:
    return word.lower().lstrip("@").rpartition("\\")[2].removesuffix(".exe").removesuffix(".com")


def _bare(word: str) -> str:
    return word.replace('"', "").replace("'", "").replace("`", "").replace("^", "")


def _matches(rule: CommandRule, words: list[str], line: str) -> bool:
    if rule.decision != "deny":
        return False
    prefix = [word.lower() for word in rule.argv]
    return rule.command == line or (bool(prefix) and [word.lower() for word in words] == prefix)
