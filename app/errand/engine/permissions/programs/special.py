"""Programs whose words are more than flags and operands: find, sed, jq, tar, test, and checks of some others."""

import re
from collections.abc import Sequence

from errand.engine.permissions.programs.options import UnknownFlag, Usage

_FIND_TESTS = frozenset(
    {"-a", "-and", "-o", "-or", "-not", "!", "(", ")", ",", "-true", "-false", "-depth", "-mount", "-xdev", "-empty"}
    | {"-readable", "-writable", "-executable", "-nouser", "-nogroup", "-daystart", "-noleaf", "-print", "-print0"}
    | {"-prune", "-quit", "-ls", "-ignore_readdir_race", "-noignore_readdir_race", "-warn", "-nowarn"}
)
_FIND_VALUES = frozenset(
    {"-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex", "-regextype", "-lname"}
    | {"-ilname", "-type", "-xtype", "-size", "-mtime", "-mmin", "-atime", "-amin", "-ctime", "-cmin", "-used"}
    | {"-user", "-group", "-uid", "-gid", "-perm", "-links", "-inum", "-fstype", "-maxdepth", "-mindepth", "-printf"}
)
_FIND_PATHS = frozenset(("-newer", "-anewer", "-cnewer", "-samefile", "-newermm"))
# A script that only prints: addresses, then p, =, l, q, d, or `s` without the flags that write or run. Possessive, so
# that it is read once.
_SED_ADDRESS = r"(?:\d++(?:~\d++)?|\$|/(?:[^/\\\n]|\\[^\n])*+/[IM]*+)"
_SED_REPLACE = "|".join(
    rf"s{mark}(?:[^{mark}\\\n]|\\[^\n])*+{mark}(?:[^{mark}\\\n]|\\[^\n])*+{mark}[gpiI0-9]*+"
    for mark in (r"\/", r"\|", r"\#", ",", ":")
)
_SED_COMMAND = rf"[ \t]*+(?:{_SED_ADDRESS}(?:,[+~]?{_SED_ADDRESS})?)?[ \t]*+!?[ \t]*+(?:[p=ldq]|{_SED_REPLACE})[ \t]*+"
_SED_PRINTS = re.compile(rf"{_SED_COMMAND}(?:[;\n]{_SED_COMMAND})*+[;\n]?[ \t]*+")
_JQ_MORE = re.compile(
    r"(?<![.\w])(?:env|import|include|input_filename|get_search_list|halt_error|modulemeta)\b|\$ENV|\$__prog|\$(?!\w)"
)
# What reads or runs more than the input of awk, or may not end; a single `|` is a pipe to a program.
_AWK_MORE = re.compile(
    r"(?<!\|)\|(?!\|)|\|&|\|\|\||@|\\\n|\b(?:system|getline|close|fflush|ENVIRON|ARGV|ARGC|PROCINFO|SYMTAB|"
    r"FUNCTAB|function|func|while|do|load|include)\b|%[^a-zA-Z%]*?(?:\d{5}|\*)"
)
# After `print`, `>` may write to a file.
_AWK_WRITES = re.compile(r"print[^\0]*>")
_AWK_FOR = re.compile(
    r"\bfor\b(?!\s*\(\s*\w+\s+in\s+\w+\s*\)|\s*\(\s*(\w+)\s*=\s*\w+\s*;\s*\1\s*<=?\s*NF\s*;\s*(?:\1\+\+|\+\+\1)\s*\))"
)
_TAR_LIST = re.compile(r"-?[tvzjJaR]++f")
_TEST_ONE = frozenset(("-e", "-f", "-d", "-s", "-r", "-w", "-x", "-L", "-h"))
_RUNS_GPG = re.compile(r"%[-+ ]?G|signature")
# %n stores a number into a variable; a large width prints for hours.
_PRINTF_SETS = re.compile(r"%[^a-zA-Z%]*+[hlLjtz]*+n")
_PRINTF_WIDTH = re.compile(r"%[^a-zA-Z%]*?(?:\d{5}|\*)")
_SHORT_SLEEP = re.compile(r"\d{1,4}(?:\.\d{1,6})?s?|\d{1,2}m")
_SMALL_NUMBER = re.compile(r"[-+]?\d{1,7}(?:\.\d{1,9})?")
_CONFIG_KEY = re.compile(r"(?:user\.(?:name|email)|core\.[a-zA-Z]+|branch\.[\w./-]+|init\.defaultBranch|pull\.rebase)")


def read_find(words: Sequence[str]) -> Usage:
    usage, rest = Usage(), list(words)
    while rest and rest[0] in ("-H", "-P"):
        rest.pop(0)
    start = next((index for index, word in enumerate(rest) if word.startswith("-") or word in "(!,"), len(rest))
    usage.paths = list(rest[:start]) or ["."]
    remaining = iter(rest[start:])
    for word in remaining:
        if word in _FIND_TESTS:
            continue
        if word not in _FIND_VALUES and word not in _FIND_PATHS:
            raise UnknownFlag(f"{word} of find is not known to only look")
        value = next(remaining, None)
        if value is None:
            raise UnknownFlag(f"{word} has no value")
        if word in _FIND_PATHS:
            usage.paths.append(value)
    return usage


def check_sed(usage: Usage) -> str | None:
    """Allows scripts that print, replace or leave out, with -n or as a filter of a pipe."""
    scripts = [usage.flags[flag] for flag in ("e", "expression") if flag in usage.flags] or usage.operands[:1]
    prints = not usage.flags.keys().isdisjoint(("n", "quiet", "silent"))
    if (prints or usage.paths == ["."]) and scripts and all(map(_SED_PRINTS.fullmatch, scripts)):
        return None
    if not prints:
        return "sed without -n is not the form that only prints"
    return "the sed script does more than print"


def check_awk(usage: Usage) -> str | None:
    """Allows programs that only print what they read, to the output. Strings and comments are not told apart."""
    text = usage.operands[0] if usage.operands else ""
    if not text or _AWK_MORE.search(text) or _AWK_WRITES.search(text) or _AWK_FOR.search(text):
        return "the awk program may do more than print its input"
    return "an operand of awk sets a variable" if any("=" in word for word in usage.operands[1:]) else None


def check_sleep(usage: Usage) -> str | None:
    return None if all(map(_SHORT_SLEEP.fullmatch, usage.operands)) else "it waits longer than a command may take"


def check_seq(usage: Usage) -> str | None:
    steps = usage.operands[1:2] if len(usage.operands) == 3 else []
    small = all(map(_SMALL_NUMBER.fullmatch, usage.operands)) and all(float(step) for step in steps)
    return None if small else "it prints numbers without end"


def check_factor(usage: Usage) -> str | None:
    return (
        None if all(word.isdecimal() and len(word) <= 18 for word in usage.operands) else "it may calculate for hours"
    )


def check_no_options_file(usage: Usage) -> str | None:
    """Binutils read more words from a file named @FILE."""
    return "@ names a file with more options" if any(word.startswith("@") for word in usage.operands) else None


def check_jq(usage: Usage) -> str | None:
    return "the jq filter reads more than its input" if any(map(_JQ_MORE.search, usage.operands[:1])) else None


def read_tar(arguments: Sequence[str]) -> Usage:
    """Listing alone, in one of its short forms: `tar -tf FILE`, `tar tzf FILE`."""
    arguments = ["-tf", *arguments[2:]] if list(arguments[:2]) == ["--list", "-f"] else arguments
    if len(arguments) < 2 or "t" not in arguments[0] or not _TAR_LIST.fullmatch(arguments[0]):
        raise UnknownFlag("tar only looks as tar -tf FILE")
    if ":" in arguments[1] or any(word.startswith("-") for word in arguments[1:]):
        raise UnknownFlag("tar could run another program")
    return Usage(operands=list(arguments[2:]), paths=[arguments[1]])


def read_test(words: Sequence[str]) -> Usage:
    if len(words) == 2 and words[0] in _TEST_ONE and not words[1].startswith("-"):
        return Usage(paths=[words[1]])
    if len(words) == 3 and words[1] in ("=", "!=") and not any(word.startswith("-") for word in words):
        return Usage(operands=list(words))
    raise UnknownFlag("not a plain test of a file")


def read_bracket(words: Sequence[str]) -> Usage:
    """`[ … ]`, which is `test`."""
    if words[-1:] != ["]"] and words[-1:] != ("]",):
        raise UnknownFlag("not a plain test of a file")
    return read_test(words[:-1])


def read_echo(words: Sequence[str]) -> Usage:
    """Every word is text."""
    return Usage(operands=list(words))


def read_printf(words: Sequence[str]) -> Usage:
    if not words:
        raise UnknownFlag("printf has no format")
    format_text = words[0].replace("%%", "")
    if words[0].startswith("-") or _PRINTF_SETS.search(format_text):
        raise UnknownFlag("printf could set a variable")
    if _PRINTF_WIDTH.search(format_text):
        raise UnknownFlag("printf could print without end")
    return Usage(operands=list(words))


def read_command(words: Sequence[str]) -> Usage:
    """`command -v NAME`, which runs nothing."""
    if len(words) < 2 or words[0] not in ("-v", "-V") or any(word.startswith("-") for word in words[1:]):
        raise UnknownFlag("command runs the program that follows")
    return Usage(flags={words[0][1:]: ""}, operands=list(words[1:]))


def check_date(usage: Usage) -> str | None:
    return None if all(word.startswith("+") for word in usage.operands) else "an operand of date sets the clock"


def check_archive(usage: Usage) -> str | None:
    return "the name could stand for another machine" if any(":" in word for word in usage.operands) else None


def check_git_format(usage: Usage) -> str | None:
    """Return why a format with a signature is refused: it runs the program that the configuration names."""
    texts = [usage.flags.get(flag, "") for flag in ("format", "pretty")]
    return "the format runs the program for signatures" if any(map(_RUNS_GPG.search, texts)) else None


def check_git_branch(usage: Usage) -> str | None:
    """Return why a name without --list is refused: it makes a branch, and -l made one too in old versions."""
    return check_git_format(usage) if not usage.operands or "list" in usage.flags else "it makes or changes a branch"


def check_git_tag(usage: Usage) -> str | None:
    lists = not usage.flags.keys().isdisjoint(("l", "list"))
    return check_git_format(usage) if not usage.operands or lists else "it makes or changes a tag"


def check_git_remote(usage: Usage) -> str | None:
    return None if not usage.operands or usage.operands[0] == "get-url" else "it changes a remote or asks one"


def check_git_config(usage: Usage) -> str | None:
    (*_, key) = usage.operands or [""]
    is_read = len(usage.operands) == 1 and usage.flags.keys() <= {"get", "local", "global", "z", "null"}
    return None if is_read and _CONFIG_KEY.fullmatch(key) else "it changes the configuration, or may show a secret"


def first_operand(*names: str, alone: bool = False) -> "_First":
    return _First(names, alone)


class _First:
    """Checks that the first operand is one of the names; `alone` allows none at all."""

    def __init__(self, names: tuple[str, ...], alone: bool) -> None:
        self._names = names
        self._alone = alone

    def __call__(self, usage: Usage) -> str | None:
        if not usage.operands:
            return check_git_format(usage) if self._alone else "it does more than look"
        return check_git_format(usage) if usage.operands[0] in self._names else "it does more than look"
