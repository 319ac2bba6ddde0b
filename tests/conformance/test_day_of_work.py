"""A day of lifelike work, 300 calls of five kinds of tasks: how often a person is asked, and what gets through.

`day_of_work.json` has the files of the workspaces and the calls in order. `looks` may not ask, and what must not
pass is denied by the policy itself.
"""

import subprocess
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from app.engine.permissions.command_policy import CommandContext, judge_command
from app.engine.permissions.command_rules import CommandRule, can_be_prefix
from app.engine.permissions.paths import Places, closed_by_default
from app.engine.permissions.policy import Decision, decide
from app.engine.permissions.programs import installed
from app.engine.permissions.repository_trust import names_no_program
from app.engine.tools.base import Access
from app.engine.tools.code.tool import Code
from app.engine.tools.shell.tool import Shell
from app.protocol.base import JsonObject
from tests.support.loop_parts import make_tool_context

DAY = Path(__file__).with_name("day_of_work.json")
MOST_ASKS = 12
# Programs of the day that a machine may not have.
PROGRAMS = ("rg", "jq", "tree", "node", "file", "column", "pip", "python", "python3", "git")


class Call(msgspec.Struct, frozen=True, rename={"effect": "class"}):
    kind: str
    workspace: str
    tool: Literal["shell", "code"]
    arguments: JsonObject
    effect: Literal["looks", "changes", "must not pass"]


class Day(msgspec.Struct, frozen=True):
    files: dict[str, dict[str, str]]
    calls: tuple[Call, ...]


@dataclass
class Person:
    """Answers an ask and remembers: edits of the folder, and the beginning of a command, wherever that is offered."""

    home: Path
    private: Path
    edits: set[Path] = field(default_factory=set[Path])
    rules: dict[Path, list[CommandRule]] = field(default_factory=dict[Path, list[CommandRule]])

    def allows(self, access: Access, workspace: Path) -> bool:
        """True if an answer before covers this."""
        if access.command is None:
            return access.tier == "write" and workspace in self.edits
        rules = self.rules.get(workspace, [])
        return judge_command(access.command, self._context(workspace), rules).finding.verdict == "allow"

    def answer(self, access: Access, decision: Decision, workspace: Path) -> None:
        if access.command is None:
            self.edits.add(workspace)
            return
        if decision.grantable is None:
            return
        for words in judge_command(access.command, self._context(workspace)).runs:
            size = 3 if words[:2] == ("npm", "run") else 1 if can_be_prefix(words[:1]) else 2
            rule = CommandRule("allow", words[:size])
            if can_be_prefix(rule.argv):
                self.rules.setdefault(workspace, []).append(rule)

    def _context(self, workspace: Path) -> CommandContext:
        places = Places(str(workspace), str(self.home), closed_by_default(str(self.home)), (str(self.private),))
        return CommandContext(places, str(workspace), trusts_git=names_no_program)


def make_workspaces(day: Day, home: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for name, files in day.files.items():
        found[name] = workspace = home / "projects" / name
        for path, text in files.items():
            (workspace / path).parent.mkdir(parents=True, exist_ok=True)
            (workspace / path).write_text(text)
        for words in (
            ["init", "-q", "-b", "main"],
            ["commit", "-q", "--allow-empty", "-m", "Begin"],
            ["tag", "v1.0"],
            ["add", "-A"],
            ["commit", "-q", "-m", "Add all"],
        ):
            options = ["-C", str(workspace), "-c", "user.name=Dana", "-c", "user.email=dana@example.org"]
            subprocess.run(["git", *options, *words], check=True)
    return found


def test_a_day_of_work_asks_seldom_and_lets_nothing_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    day = msgspec.json.decode(DAY.read_bytes(), type=Day)
    home = tmp_path.resolve()
    (home / ".ssh").mkdir(parents=True)
    _install(tmp_path / "bin", monkeypatch)
    workspaces = make_workspaces(day, home)
    person, asks, wrong = Person(home, home / "errand-data"), list[str](), list[str]()
    for call in day.calls:
        workspace = workspaces[call.workspace]
        access = _access(call, workspace, tmp_path)
        decision = decide(access, workspace, "ask", frozenset(), person.private, home)
        if decision.verdict == "ask" and not person.allows(access, workspace):
            asks.append(f"{call.kind:20} {call.effect:14} {access.text[:100]!r}: {decision.reason}")
            if call.effect != "must not pass":
                person.answer(access, decision, workspace)
        if (decision.verdict, call.effect) == ("ask", "looks"):
            wrong.append(f"only looks, but asks: {access.text!r}: {decision.reason}")
        if (decision.verdict == "deny") != (call.effect == "must not pass"):
            wrong.append(f"{call.effect}, but {decision.verdict}: {access.text!r}")
    table = "\n".join([f"{len(asks)} asks in {len(day.calls)} calls:", *asks, *wrong])
    assert len(day.calls) >= 300 and len(Counter(call.kind for call in day.calls)) == 5
    assert not wrong and len(asks) <= MOST_ASKS, table


def _access(call: Call, workspace: Path, folder: Path) -> Access:
    context = replace(make_tool_context(folder), workspace=workspace)
    tool = Shell(context) if call.tool == "shell" else Code(context)
    return tool.access(tool.prepare_arguments(call.arguments))


def _install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes the programs of the day for programs of the system; they are judged, not run."""
    folder.mkdir()
    for name in PROGRAMS:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    monkeypatch.setattr(installed, "SYSTEM_PATH", f"{installed.SYSTEM_PATH}:{folder}")
