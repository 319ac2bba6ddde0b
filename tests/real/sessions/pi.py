"""pi: `~/.pi/agent/sessions/*/*.jsonl`."""

import json
import signal
from pathlib import Path

from tests.real.sessions.place import Place, Step
from tests.real.sessions.scripted_model import MODEL, Reply

PACKAGE = "@mariozechner/pi-coding-agent@0.73.1"
SCRIPT = {
    "list the files": (
        Reply("I look.", "Which files are there?", (("bash", {"command": "ls"}),)),
        Reply("There are two files."),
    ),
    "read what is missing": (
        Reply("", "", (("read", {"path": "/nowhere/missing.txt"}), ("bash", {"command": "exit 3"}))),
        Reply("It is not there, and the command failed."),
    ),
    "what colour": (Reply("It is red."),),
    "break now": (Reply("The scripted model refuses.", status=400),),
    "talk without end": (Reply("I begin to say", hangs=True), Reply("I begin to say", hangs=True)),
    "go on": (Reply("I go on."),),
    "after the summary": (Reply("I know the summary."),),
}
_MODELS = {
    "providers": {
        "scripted": {
            "baseUrl": "ADDRESS/v1",
            "api": "openai-completions",
            "apiKey": "none",
            "models": [{"id": MODEL, "reasoning": True, "input": ["text", "image"], "contextWindow": 200000}],
        }
    }
}


def run(folder: Path, programs: Path) -> Path:
    """Write the sessions; returns the folder that holds them."""
    setup = Place(folder, programs, SCRIPT, {"PI_OFFLINE": "1"})
    setup.write(".pi/agent/models.json", json.dumps(_MODELS))
    setup.write(".pi/agent/settings.json", json.dumps({"compaction": {"enabled": True, "keepRecentTokens": 5}}))
    pi = ("pi", "--provider", "scripted", "--model", MODEL, "--thinking", "low")
    setup.run(*pi, "-p", "list the files")
    setup.run(*pi, "-p", "-c", "read what is missing")
    setup.run(*pi, "-p", "-c", "@red.png", "what colour is it?")
    setup.run(*pi, "-p", "-c", "break now")
    setup.run(*pi, "-p", "-c", "talk without end", stop=signal.SIGINT)
    steps = (
        Step("scripted", "talk without end\r"),
        Step("I begin to say", "\x1b"),
        Step("abort", "!echo from the shell\r"),
        Step("from the shell", "go on\r"),
        Step("I go on", "/compact"),
        Step("Manually compact", "\r"),
        Step("(?i)compacted|nothing to compact", "after the summary\r"),
    )
    setup.type(*pi, "-c", steps=steps)
    return setup.home / ".pi" / "agent" / "sessions"
