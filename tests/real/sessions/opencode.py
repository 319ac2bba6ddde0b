"""OpenCode: `opencode.db` below `~/.local/share/opencode`, and the output of `opencode export`."""

import json
import signal
import time
import urllib.request
from pathlib import Path

from tests.real.sessions.place import Place
from tests.real.sessions.scripted_model import MODEL, Reply

PACKAGE = "opencode-ai@1.18.33"
SCRIPT = {
    "list the files": (
        Reply("I look.", "Which files are there?", (("bash", {"command": "ls", "description": "List"}),)),
        Reply("There are two files."),
    ),
    "read what is missing": (
        Reply(
            "",
            "",
            (("read", {"filePath": "/nowhere/missing.txt"}), ("bash", {"command": "exit 3", "description": "Fail"})),
        ),
        Reply("It is not there, and the command failed."),
    ),
    "what colour": (Reply("It is red."),),
    "break now": (Reply("The scripted model refuses.", status=400),),
    "talk without end": (Reply("I begin to say", hangs=True),),
    "ask a helper": (
        Reply(
            "",
            "",
            (("task", {"description": "Count lines", "prompt": "count the lines", "subagent_type": "general"}),),
        ),
        Reply("The helper counted three lines."),
    ),
    "count the lines": (
        Reply("", "", (("bash", {"command": "wc -l notes.txt", "description": "Count"}),)),
        Reply("Three lines."),
    ),
    "go on": (Reply("I go on after the summary."),),
}
_PORT = 4123
_CONFIG = {
    "autoupdate": False,
    "share": "disabled",
    "permission": "allow",
    "model": f"scripted/{MODEL}",
    "small_model": f"scripted/{MODEL}",
    "provider": {
        "scripted": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Scripted",
            "options": {"baseURL": "ADDRESS/v1", "apiKey": "none"},
            "models": {
                MODEL: {
                    "name": "Scripted",
                    "attachment": True,
                    "reasoning": True,
                    "tool_call": True,
                    "modalities": {"input": ["text", "image"], "output": ["text"]},
                    "limit": {"context": 200000, "output": 8000},
                }
            },
        }
    },
}


def run(folder: Path, programs: Path) -> Path:
    """Write the sessions; returns the folder that holds them."""
    setup = Place(folder, programs, SCRIPT, {"OPENCODE_DISABLE_MODELS_FETCH": "1"})
    setup.write(".config/opencode/opencode.json", json.dumps(_CONFIG))
    setup.run("opencode", "run", "list the files")
    setup.run("opencode", "run", "-c", "read what is missing")
    setup.run("opencode", "run", "-c", "-f", str(setup.picture), "--", "what colour is it?")
    _compact(setup)
    setup.run("opencode", "run", "-c", "go on")
    setup.run("opencode", "run", "-c", "--fork", "go on")
    setup.run("opencode", "run", "--title", "Breaks", "break now")
    setup.run("opencode", "run", "-c", "talk without end", stop=signal.SIGINT)
    setup.run("opencode", "run", "--title", "Helpers", "ask a helper")
    return setup.home / ".local" / "share" / "opencode"


def _compact(setup: Place) -> None:
    """Summarise the only session, as `/compact` does."""
    with setup.serving("opencode", "serve", "--port", str(_PORT)):
        for _ in range(100):
            try:
                (session,) = _call("session")
                break
            except OSError:
                time.sleep(0.3)
        else:
            raise TimeoutError("opencode serve does not answer")
        _call(f"session/{session['id']}/summarize", {"providerID": "scripted", "modelID": MODEL})


def _call(path: str, body: dict[str, str] | None = None) -> list[dict[str, str]]:
    request = urllib.request.Request(f"http://127.0.0.1:{_PORT}/{path}", headers={"content-type": "application/json"})
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(request, data, timeout=60) as answer:
        return json.load(answer)
