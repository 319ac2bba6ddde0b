"""goose: `~/.local/share/goose/sessions/sessions.db`, and the output of `goose session export --format json`."""

import signal
from pathlib import Path

from tests.real.sessions.place import Place, Step
from tests.real.sessions.scripted_model import MODEL, Reply

PACKAGE = "@aaif/goose-binary-linux-x64@1.52.0"
SCRIPT = {
    "list the files": (
        Reply("I look.", "Which files are there?", (("shell", {"command": "ls"}),)),
        Reply("There are two files."),
    ),
    "read what is missing": (
        Reply(
            "",
            "",
            (
                ("shell", {"command": "cat /nowhere/missing.txt"}),
                ("shell", {"command": "exit 3"}),
                ("no_such_tool", {"a": 1}),
            ),
        ),
        Reply("It is not there, and the command failed."),
    ),
    "break now": (Reply("The scripted model refuses.", status=400),) * 4,
    "talk without end": (Reply("I begin to say", hangs=True),),
    "ask a helper": (
        Reply("", "", (("delegate", {"instructions": "count the lines"}),)),
        Reply("The helper counted three lines."),
    ),
    "count the lines": (Reply("", "", (("shell", {"command": "wc -l notes.txt"}),)), Reply("Three lines.")),
    "go on": (Reply("I go on."),),
    "after the summary": (Reply("I know the summary."),),
}
_VARIABLES = {
    "GOOSE_PROVIDER": "openai",
    "GOOSE_MODEL": MODEL,
    "OPENAI_HOST": "ADDRESS",
    "OPENAI_API_KEY": "none",
    "GOOSE_MODE": "auto",
    "GOOSE_DISABLE_KEYRING": "1",
    "GOOSE_TELEMETRY_ENABLED": "false",
    "GOOSE_CLI_THEME": "ansi",
}


def run(folder: Path, programs: Path) -> Path:
    """Write the sessions; returns the folder that holds them."""
    setup = Place(folder, programs, SCRIPT, _VARIABLES)
    goose = str(programs / "node_modules" / "@aaif" / "goose-binary-linux-x64" / "bin" / "goose")
    run = (goose, "run", "--with-builtin", "developer")
    setup.run(*run, "-n", "files", "-t", "list the files")
    setup.run(*run, "-n", "files", "-r", "-t", "read what is missing")
    steps = (
        Step(r"goose is ready|>", "/compact\r"),
        Step(r"(?i)compact", "\r"),
        Step(r"(?i)complete|compacted", "after the summary\r"),
        Step("I know the summary", "/exit\r"),
    )
    setup.type(goose, "session", "--with-builtin", "developer", "-n", "files", "-r", steps=steps)
    setup.run(*run, "-n", "helpers", "-t", "ask a helper")
    setup.run(*run, "-n", "breaks", "-t", "break now")
    setup.run(*run, "-n", "breaks", "-r", "-t", "talk without end", stop=signal.SIGINT)
    setup.run(*run, "-n", "breaks", "-r", "-t", "go on")
    return setup.home / ".local" / "share" / "goose" / "sessions"
