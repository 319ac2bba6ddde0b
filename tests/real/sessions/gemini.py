"""gemini-cli: `~/.gemini/tmp/*/chats/session-*`."""

import json
import signal
from pathlib import Path

from tests.real.sessions.place import Place
from tests.real.sessions.scripted_model import Reply

PACKAGE = "@google/gemini-cli@0.61.0"
SCRIPT = {
    "list the files": (
        Reply("I look.", "**Looking** Which files are there?", (("run_shell_command", {"command": "ls"}),)),
        Reply("There are two files."),
    ),
    "read what is missing": (
        Reply(
            "",
            "",
            (
                ("read_file", {"file_path": "/nowhere/missing.txt"}),
                ("run_shell_command", {"command": "exit 3"}),
                ("no_such_tool", {"a": 1}),
            ),
        ),
        Reply("It is not there, and the command failed."),
    ),
    "what colour": (Reply("It is red."),),
    "break now": (Reply("The scripted model refuses.", status=400),),
    "talk without end": (Reply("I begin to say", hangs=True), Reply("I begin to say", hangs=True)),
    "go on": (Reply("I go on."),),
}
_VARIABLES = {
    "GEMINI_API_KEY": "none",
    "GOOGLE_GEMINI_BASE_URL": "ADDRESS",
    "GEMINI_CLI_TRUST_WORKSPACE": "true",
}
_SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"disableAutoUpdate": True},
}


def run(folder: Path, programs: Path) -> Path:
    """Write the sessions; returns the folder that holds them."""
    place = Place(folder, programs, SCRIPT, _VARIABLES)
    place.write(".gemini/settings.json", json.dumps(_SETTINGS))
    gemini = ("gemini", "-y", "--skip-trust", "-m", "gemini-2.5-pro")
    place.run(*gemini, "-p", "list the files")
    place.run(*gemini, "-r", "latest", "-p", "read what is missing")
    place.run(*gemini, "-r", "latest", "-p", "what colour is @red.png?")
    place.run(*gemini, "-r", "latest", "-p", "break now")
    place.run(*gemini, "-r", "latest", "-p", "talk without end", stop=signal.SIGINT)
    return place.home / ".gemini" / "tmp"
