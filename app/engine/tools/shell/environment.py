"""The environment of a task's commands: that of the client that began it, without keys, and with nobody there to type.

Which client that is is kept with each request: what begins a task, however far down, belongs to the request that asked
for it, and so does all that follows from it. Where there is none the engine's own environment is used.
"""

import os
from collections.abc import Mapping
from contextvars import ContextVar

from app.environment import without_secrets

# A client's variables while one of its requests is served, and in the tasks that this begins; empty for none.
client_environment: ContextVar[Mapping[str, str]] = ContextVar("client_environment")

_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
_NO_EDITOR = "sh -c 'echo \"There is no editor and nobody to type: {advice}.\" >&2; exit 1' editor"
# Nobody sits at a command's terminal: what would wait for a person fails at once, and says what to do instead.
_NOBODY_THERE = {
    "EDITOR": _NO_EDITOR.format(advice="change the file in another way"),
    "VISUAL": _NO_EDITOR.format(advice="change the file in another way"),
    # What git has prepared is taken as it is: right for merge, revert, rebase --continue and commit --amend, while a
    # commit without a message is refused by git itself.
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
    """That of the client for whom this is called."""
    return clean_environment(client_environment.get({}) or os.environ)


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What of an environment a tool may see, and that nobody is there to type. PATH is always set."""
    # Programs have variables of their own that go before EDITOR: KUBE_EDITOR, SVN_EDITOR, HGEDITOR.
    editors = {name: _NOBODY_THERE["EDITOR"] for name in environ if name.endswith("EDITOR")}
    return {"PATH": _DEFAULT_PATH} | without_secrets(environ) | editors | _NOBODY_THERE
