"""Variables, and settings of git, whose values are commands or change which program a name means."""

import re

from errand.engine.permissions.run_time.marked_line import HOME, SEARCH_PATH, STREAM
from errand.engine.permissions.run_time.wrappers import is_marked

_START_UP = re.compile(
    r"BASH_ENV|BASH_FUNC_.*|BASH_(?:CMDS|ALIASES)\b.*|GIT_CONFIG_(?:KEY_|VALUE_|PARAMETERS|COUNT).*|GIT_EXEC_PATH"
)
_PROMPTS = frozenset(("PS0", "PS1", "PS2", "PS4"))
# Their values are commands. A name that ends with one of the first three, as in GIT_EDITOR, counts too.
_COMMAND_ENDINGS = frozenset(("EDITOR", "PAGER", "BROWSER"))
_COMMAND_VARIABLES = frozenset(
    [
        "VISUAL",
        "GIT_ASKPASS",
        "SSH_ASKPASS",
        "SUDO_ASKPASS",
        "GIT_SSH",
        "GIT_SSH_COMMAND",
        "GIT_EXTERNAL_DIFF",
        "GIT_PROXY_COMMAND",
        "RSYNC_RSH",
        "CVS_RSH",
        "LESSOPEN",
        "LESSCLOSE",
        "SHELL",
        "PROMPT_COMMAND",
    ]
)
# The last part of keys such as core.pager.
_GIT_COMMAND_KEYS = frozenset(
    [
        "pager",
        "editor",
        "sshcommand",
        "fsmonitor",
        "external",
        "textconv",
        "askpass",
        "driver",
        "command",
        "cmd",
        "program",
        "clean",
        "smudge",
        "process",
        "gitproxy",
        "sequenceeditor",
        "helper",
    ]
)
# What a search path may name beside itself: folders of the system, and those below the home directory.
_SEARCH_FOLDER = re.compile(
    rf"(?:[{HOME}~]|/(?!tmp\b|var/tmp\b|dev\b|proc\b|home\b|workspace\b))[\w./+-]*|{SEARCH_PATH}"
)


def assignment_danger(variable: str, value: str, folder: str) -> str:
    """Return why this assignment can make a later command run something else, empty if it cannot.

    `folder` is the one where the command runs.
    """
    if _START_UP.fullmatch(variable):
        return f"`{variable}` can make names and programs run something else"
    if variable in _PROMPTS and (is_marked(value) or "$(" in value or "`" in value):
        return f"`{variable}` holds code that is known only when it runs"
    if variable == "ENV" and (STREAM in value or "/" in value):
        return "`ENV` names a file that shells run first"
    if variable == "PATH" and not all(_is_safe_search_folder(entry, folder) for entry in value.split(":")):
        return "`PATH` names a folder whose programs are known only when it runs"
    return ""


def _is_safe_search_folder(entry: str, folder: str) -> bool:
    is_of_workspace = entry.startswith(folder.rstrip("/") + "/")
    return not is_of_workspace and bool(_SEARCH_FOLDER.fullmatch(entry)) and "/../" not in f"{entry}/"


def holds_command(variable: str) -> bool:
    """Return True if programs run the value of this variable."""
    return variable in _COMMAND_VARIABLES or variable.rpartition("_")[2] in _COMMAND_ENDINGS


def may_be_git_key(word: str) -> bool:
    """Return True if this word of `git config` can be the key that it sets."""
    return not word.startswith("-") and ("." in word or is_marked(word))


def is_git_command_key(key: str) -> bool:
    """Return True if git runs the value of this setting."""
    return "." in key and key.rpartition(".")[2].lower() in _GIT_COMMAND_KEYS
