"""gemini-cli: `~/.gemini/tmp/*/chats/session-*`."""

import hashlib
import json
import re
import signal
from pathlib import Path

from tests.real.sessions.place import Place, Step
from tests.real.sessions.scripted_model import Reply

PACKAGE = "@google/gemini-cli@0.61.0"
# Long enough to be worth a summary, and without repetitions, which gemini-cli takes for a loop.
_LONG = " ".join(hashlib.sha256(str(number).encode()).hexdigest() for number in range(200))
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
    "ask a helper": (
        Reply("", "", (("invoke_agent", {"agent_name": "generalist", "prompt": "count the lines"}),)),
        Reply("The helper counted three lines."),
    ),
    "count the lines": (
        Reply("", "", (("run_shell_command", {"command": "wc -l notes.txt"}),)),
        Reply("", "", (("complete_task", {"result": {"response": "Three lines."}}),)),
    ),
    "go on": (Reply(f"I go on. {_LONG}"),),
    "after the summary": (Reply("I know the summary."),),
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
    setup = Place(folder, programs, SCRIPT, _VARIABLES)
    setup.write(".gemini/settings.json", json.dumps(_SETTINGS))
    gemini = ("gemini", "-y", "--skip-trust", "-m", "gemini-2.5-pro")
    # First: at its start in a terminal gemini-cli removes sessions that were resumed.
    steps = (
        *_line("Type your message", "go on"),
        *_line("I go on", "!echo from the shell"),
        Step(r"(?s)from the shell.*from the shell", "\x1b"),
        *_line("Type your message", "/compress"),
        *_line("(?i)compressed", "after the summary"),
        *_line("I know the summary", "/quit"),
    )
    setup.type(*gemini, steps=steps)
    setup.run(*gemini, "-p", "list the files")
    setup.run(*gemini, "-r", "latest", "-p", "read what is missing")
    setup.run(*gemini, "-r", "latest", "-p", "what colour is @red.png?")
    setup.run(*gemini, "-r", "latest", "-p", "break now")
    setup.run(*gemini, "-r", "latest", "-p", "talk without end", stop=signal.SIGINT)
    setup.run(*gemini, "-p", "ask a helper")
    return setup.home / ".gemini" / "tmp"


def _line(after: str, text: str) -> tuple[Step, Step]:
    """Enter on its own: what comes quickly counts as pasted."""
    return Step(after, text), Step(re.escape(text.lstrip("!")), "\r")
