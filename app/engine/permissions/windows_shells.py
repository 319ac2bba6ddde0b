"""PowerShell and cmd: their hard floor and the user's deny rules. Everything else is asked about."""

import re
from collections.abc import Sequence

from app.engine.permissions.command_rules import CommandRule
from app.engine.permissions.verdict import Finding, ask, deny

NAMES = frozenset(("powershell", "pwsh", "cmd"))
_SPLIT = re.compile(r"[;|&(){}\n\r]++")
_WORD = re.compile(r"""(?:"[^"]*+"?|'[^']*+'?|[^\s"']++)++""")
_DELETES = frozenset(("remove-item", "ri", "rm", "rmdir", "del", "erase", "rd"))
_FORMATS = frozenset(
    ("format-volume", "clear-disk", "initialize-disk", "remove-partition", "reset-physicaldisk", "clean")
)
_RECURSES = re.compile(r"-r(?:e(?:c(?:u(?:r(?:s(?:e)?)?)?)?)?)?(?::\$true)?|/s|-[rf]{2}|-recursive", re.IGNORECASE)
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
        return deny("hard floor", "never allowed: a fork bomb would stop this computer")
    for part in _SPLIT.split(line.replace("`\n", "").replace("^\n", "")):
        words = [_bare(word) for word in _WORD.findall(part)]
        for at, word in enumerate(words):
            name = word.lower().rpartition("\\")[2].removesuffix(".exe")
            if (at == 0 or name in _DELETES or name in _FORMATS) and (reason := _floor(name, words[at + 1 :])):
                return deny("hard floor", f"never allowed: {reason}")
            if any(_matches(rule, words[at : at + len(rule.argv)], line) for rule in rules):
                return deny("your deny rule", "you denied this")
            if name in _DELETES or name in _FORMATS:
                break
    return ask("program", "commands of this shell are always asked about")


def _floor(name: str, words: list[str]) -> str | None:
    if name in _FORMATS and (name != "clean" or not words):
        return "it would format a disk"
    if name == "format" and any(re.fullmatch(r"[a-zA-Z]:", word) for word in words):
        return "it would format a disk"
    lowered = [word.lower() for word in words]
    operands = [word for word in words if not word.startswith("-") and not re.fullmatch(r"/[a-zA-Z]", word)]
    hits_root = any(word and _ROOT.fullmatch(word) for word in operands)
    if name in _DELETES and hits_root and any(_RECURSES.fullmatch(word) for word in words):
        return "it would delete the system or the home directory"
    if name in ("icacls", "takeown", "cacls") and hits_root and not {"/t", "/r"}.isdisjoint(lowered):
        return "it would change the rights of the whole system"
    return None


def _bare(word: str) -> str:
    return word.replace('"', "").replace("'", "").replace("`", "").replace("^", "")


def _matches(rule: CommandRule, words: list[str], line: str) -> bool:
    if rule.decision != "deny":
        return False
    prefix = [word.lower() for word in rule.argv]
    return rule.command == line or (bool(prefix) and [word.lower() for word in words] == prefix)
