"""Codex: `~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`."""

import re
import signal
from pathlib import Path

from tests.real.sessions.place import Place
from tests.real.sessions.scripted_model import MODEL, Reply

PACKAGE = "@openai/codex@0.171.0"
SCRIPT = {
    "list the files": (
        Reply("I look.", "**Looking** Which files are there?", (("exec_command", {"cmd": "ls"}),)),
        Reply("There are two files."),
    ),
    "read what is missing": (
        Reply("", "", (("exec_command", {"cmd": "cat missing.txt"}), ("no_such_tool", {"a": 1}))),
        Reply("", "", (("apply_patch", {"raw input": "*** Begin Patch\n*** Nonsense\n*** End Patch"}),)),
        Reply("It is not there, and the patch failed."),
    ),
    "what colour": (Reply("It is red."),),
    "break now": (Reply("The scripted model refuses.", status=400),),
    "talk without end": (Reply("I begin to say", hangs=True),),
    "go another way": (Reply("Another way it is."),),
    "ask a helper": (
        Reply("", "", (("multi_agent_v1/spawn_agent", {"message": "count the lines"}),)),
        Reply("", "", (("exec_command", {"cmd": "sleep 5", "yield_time_ms": 8000}),)),
        Reply("The helper counted three lines."),
    ),
    "ask one who knows": (
        Reply("", "", (("multi_agent_v1/spawn_agent", {"message": "count the words", "fork_context": True}),)),
        Reply("", "", (("exec_command", {"cmd": "sleep 5", "yield_time_ms": 8000}),)),
        Reply("The helper counted three words."),
    ),
    "count the words": (Reply("", "", (("exec_command", {"cmd": "wc -w notes.txt"}),)), Reply("Three words.")),
    "after the summary": (Reply("I know the summary."),),
    "count the lines": (Reply("", "", (("exec_command", {"cmd": "wc -l notes.txt"}),)), Reply("Three lines.")),
}
_CONFIG = f"""
model = "{MODEL}"
model_provider = "scripted"
check_for_update_on_startup = false
[analytics]
enabled = false
[features]
multi_agent = true
[model_providers.scripted]
name = "Scripted"
base_url = "ADDRESS/v1"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
"""


def run(folder: Path, programs: Path) -> Path:
    """Write the sessions; returns the folder that holds them."""
    setup = Place(folder, programs, SCRIPT, {"OPENAI_API_KEY": "none"})
    setup.write(".codex/config.toml", _CONFIG)
    codex = ("codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
    first = re.search(r"session id: (\S+)", setup.run(*codex, "list the files"))
    setup.run(*codex, "resume", "--last", "read what is missing")
    if first is not None:
        setup.run(*codex, "fork", first[1], "go another way")
        setup.run(*codex, "resume", "-i", str(setup.picture), first[1], "what colour is it?")
        setup.run(*codex, "resume", first[1], "break now")
        setup.run(*codex, "resume", first[1], "talk without end", stop=signal.SIGINT)
    setup.run(*codex, "ask a helper")
    setup.run(*codex, "resume", "--last", "ask one who knows")
    setup.run(*codex, "-c", "model_auto_compact_token_limit=50", "resume", "--last", "after the summary")
    return setup.home / ".codex" / "sessions"
