"""The environment of a task's commands: the client's variables without keys, and with interactive programs disabled.

A context variable carries the client's environment from a request to every task that it starts, directly or not.
Without one the engine's environment is used.
"""

import os
from collections.abc import Mapping
from contextvars import ContextVar

from errand.system.environment import without_secrets

# The client's variables while one of its requests is served, and in tasks started by it; empty for none.
client_environment: ContextVar[Mapping[str, str]] = ContextVar("client_environment")

_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
_NO_EDITOR = "sh -c 'echo \"There is no editor and nobody to type: {advice}.\" >&2; exit 1' editor"
# Commands have no terminal: programs that would wait for input fail at once, with advice.
_NON_INTERACTIVE = {
    "EDITOR": _NO_EDITOR.format(advice="change the file in another way"),
    "VISUAL": _NO_EDITOR.format(advice="change the file in another way"),
    # Accepts git's prepared text unchanged: right for merge, revert, rebase --continue and commit --amend, while git
    # itself rejects a commit without a message.
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": _NO_EDITOR.format(
        advice="set GIT_SEQUENCE_EDITOR to a command that edits the list of commits in the file it is given, such as "
        "sed -i, or to true to take the list as it is"
    ),
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "false",
    "SSH_ASKPASS": "false",
    "SSH_ASKPASS_REQUIRE": "never",
    "GIT_PAGER": "cat",
    "PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
}


def environment_of_commands() -> dict[str, str]:
    """Return the environment of the client that is being served."""
    return clean_environment(client_environment.get({}) or os.environ)


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without secrets and with interactive programs disabled. PATH is always set."""
    # Some programs have variables that override EDITOR: KUBE_EDITOR, SVN_EDITOR, HGEDITOR.
    editors = {name: _NON_INTERACTIVE["EDITOR"] for name in environ if name.endswith("EDITOR")}
    return {"PATH": _DEFAULT_PATH} | without_secrets(environ) | editors | _NON_INTERACTIVE
