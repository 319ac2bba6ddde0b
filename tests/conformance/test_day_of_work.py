"""A day of lifelike work, 300 calls of five kinds of tasks: how often a person is asked, and what gets through.

`day_of_work.json` has the files of the workspaces and the calls in order. `looks` may not ask, and what must not
pass is denied by the policy itself.
"""

import subprocess
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from errand.engine.permissions.auto_mode import Confinement
from errand.engine.permissions.offers import offers_for
from errand.engine.permissions.policy import Decision, decide
from errand.engine.permissions.programs import installed
from errand.engine.tools.base import Access
from errand.engine.tools.code.tool import Code
from errand.engine.tools.shell.tool import Shell
from errand.protocol.asks import GrantedCall
from errand.protocol.base import JsonObject
from errand.protocol.tasks.groups import ApproveMode
from tests.support.loop_parts import make_tool_context

DAY = Path(__file__).with_name("day_of_work.json")
# By approval mode.
MAX_ASKS: dict[ApproveMode, int] = {"ask": 12, "auto": 3}
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
    """Answers an ask, and remembers for the workspace what is offered: edits of its files, commands that begin so."""

    home: Path
    private: Path
    mode: ApproveMode
    granted: dict[Path, frozenset[GrantedCall]] = field(default_factory=dict[Path, frozenset[GrantedCall]])

    def decide(self, access: Access, workspace: Path) -> Decision:
        return self._judge(workspace, access, self.granted.get(workspace, frozenset()))

    def answer(self, access: Access, decision: Decision, workspace: Path) -> None:
        offers = offers_for(access, decision, str(workspace), partial(self._judge, workspace))
        widest_offers = [offer for offer in offers if offer.kind in ("prefix", "folder")][-1:]
        calls = frozenset(call for offer in widest_offers for call in offer.calls)
        self.granted[workspace] = self.granted.get(workspace, frozenset()) | calls

    def _judge(self, workspace: Path, access: Access, granted: frozenset[GrantedCall]) -> Decision:
        held = Confinement(is_sandboxed=True, has_own_tmp=True)
        return decide(access, workspace, self.mode, granted, self.private, self.home, confinement=held)


def make_workspaces(day: Day, home: Path) -> dict[str, Path]:
    workspaces: dict[str, Path] = {}
    for name, files in day.files.items():
        workspaces[name] = workspace = home / "projects" / name
        for path, text in files.items():
            (workspace / path).parent.mkdir(parents=True, exist_ok=True)
            (workspace / path).write_text(text)
        for arguments in (
            ["init", "-q", "-b", "main"],
            ["commit", "-q", "--allow-empty", "-m", "Begin"],
            ["tag", "v1.0"],
            ["add", "-A"],
            ["commit", "-q", "-m", "Add all"],
        ):
            options = ["-C", str(workspace), "-c", "user.name=Dana", "-c", "user.email=dana@example.org"]
            subprocess.run(["git", *options, *arguments], check=True)
    return workspaces


@pytest.mark.parametrize("mode", MAX_ASKS)
def test_a_day_of_work_asks_seldom_and_lets_nothing_through(
    mode: ApproveMode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = msgspec.json.decode(DAY.read_bytes(), type=Day)
    home = tmp_path.resolve()
    (home / ".ssh").mkdir(parents=True)
    _install(tmp_path / "bin", monkeypatch)
    workspaces = make_workspaces(day, home)
    person, asks, wrong = Person(home, home / "errand-data", mode), list[str](), list[str]()
    for call in day.calls:
        workspace = workspaces[call.workspace]
        access = _access(call, workspace, tmp_path)
        decision = person.decide(access, workspace)
        if decision.verdict == "ask":
            asks.append(f"{call.kind:20} {call.effect:14} {access.text[:100]!r}: {decision.reason}")
            if call.effect != "must not pass":
                person.answer(access, decision, workspace)
        if (decision.verdict, call.effect) == ("ask", "looks"):
            wrong.append(f"only looks, but asks: {access.text!r}: {decision.reason}")
        if (decision.verdict == "deny") != (call.effect == "must not pass"):
            wrong.append(f"{call.effect}, but {decision.verdict}: {access.text!r}")
    table = "\n".join([f"{len(asks)} asks in {len(day.calls)} calls:", *asks, *wrong])
    assert len(day.calls) >= 300 and len(Counter(call.kind for call in day.calls)) == 5
    assert not wrong and len(asks) <= MAX_ASKS[mode], table


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
