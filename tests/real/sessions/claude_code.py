"""Claude Code: `~/.claude/projects/*/*.jsonl`, with sub-agents and long results in a folder beside the session."""

import json
from pathlib import Path

from tests.real.sessions.place import Place, Step
from tests.real.sessions.scripted_model import MODEL, Reply

PACKAGE = "@anthropic-ai/claude-code@2.1.332"
SCRIPT = {
    "list the files": (
        Reply("I look.", "Which files are there?", (("Bash", {"command": "ls", "description": "List"}),)),
        Reply("There are two files."),
    ),
    "read what is missing": (
        Reply(
            "",
            "",
            (
                ("Read", {"file_path": "/nowhere/missing.txt"}),
                ("Bash", {"command": "echo before; exit 3", "description": "Fail"}),
            ),
        ),
        Reply("It is not there, and the command failed."),
    ),
    "print a lot": (
        Reply("", "", (("Bash", {"command": "seq 1 20000", "description": "Count"}),)),
        Reply("That was a lot."),
    ),
    "what colour": (Reply("", "", (("Read", {"file_path": "red.png"}),)), Reply("It is red.")),
    "break now": (Reply("The scripted model refuses.", status=400),) * 12,
    "talk without end": (Reply("I begin to say", hangs=True),),
    "ask a helper": (
        Reply(
            "",
            "",
            (
                (
                    "Agent",
                    {
                        "description": "Count",
                        "prompt": "count the lines",
                        "subagent_type": "general-purpose",
                        "run_in_background": False,
                    },
                ),
            ),
        ),
        Reply("The helper counted three lines."),
    ),
    "count the lines": (
        Reply("", "", (("Bash", {"command": "wc -l notes.txt", "description": "Count"}),)),
        Reply("Three lines."),
    ),
    "go on": (Reply("I go on."),),
}
_VARIABLES = {
    "ANTHROPIC_BASE_URL": "ADDRESS",
    "ANTHROPIC_API_KEY": "none-of-yours-0000000000000000000000",
    "ANTHROPIC_MODEL": MODEL,
    "ANTHROPIC_SMALL_FAST_MODEL": MODEL,
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "IS_SANDBOX": "1",
}


def run(folder: Path, programs: Path) -> Path:
    """Write the sessions; returns the folder that holds them."""
    setup = Place(folder, programs, SCRIPT, _VARIABLES)
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    settings = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "bypassPermissionsModeAccepted": True,
        "customApiKeyResponses": {"approved": [_VARIABLES["ANTHROPIC_API_KEY"][-20:]], "rejected": []},
        "projects": {str(setup.work): trusted},
    }
    setup.write(".claude.json", json.dumps(settings))
    claude = ("claude", "--dangerously-skip-permissions")
    setup.run(*claude, "-p", "list the files")
    setup.run(*claude, "-c", "-p", "read what is missing")
    setup.run(*claude, "-c", "-p", "print a lot")
    setup.run(*claude, "-c", "-p", "what colour is red.png?")
    setup.run(*claude, "-c", "-p", "break now")
    setup.run(*claude, "-c", "-p", "ask a helper")
    steps = (
        Step(r"❯|>", "!echo from the shell\r"),
        Step("from the shell", "/cost\r"),
        Step(r"(?i)cost|duration|session", "\x1b"),
        Step("", "talk without end\r"),
        Step("I begin to say", "\x1b"),
        Step("(?i)interrupt", "go on\r"),
        Step("I go on", "/compact\r"),
    )
    setup.type(*claude, steps=steps)
    return setup.home / ".claude" / "projects"
