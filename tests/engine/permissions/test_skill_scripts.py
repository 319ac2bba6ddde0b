"""Scripts of the person's skills: read without asking, run after asking, allowed by the beginning of their command."""

from pathlib import Path

import pytest

from errand.engine.permissions.offers import offers_for
from errand.engine.permissions.policy import Decision, decide
from errand.engine.tools.base import Access
from errand.protocol.asks import GrantedCall


class Home:
    """A home directory with a workspace and a skill that has two scripts and a link out of its folder."""

    def __init__(self, home: Path) -> None:
        self.home = home.resolve()
        self.workspace = self.home / "project"
        self.scripts = self.home / ".config/errand/skills/report/scripts"
        self.workspace.mkdir()
        self.scripts.mkdir(parents=True)
        (self.scripts / "run.sh").write_text("#!/bin/sh\n")
        (self.scripts / "make.py").write_text("print(1)")
        (self.scripts / "link.sh").symlink_to("/usr/bin/env")

    def access(self, line: str) -> Access:
        line = line.replace("SKILL", str(self.scripts))
        return Access("run", line, reads=(self.workspace,), command=line, operation="run")

    def judge(self, access: Access, granted: frozenset[GrantedCall] = frozenset()) -> Decision:
        return decide(access, self.workspace, "ask", granted, self.home / "data", self.home)

    def prefixes(self, line: str) -> list[tuple[str, ...]]:
        access = self.access(line)
        offers = offers_for(access, self.judge(access), str(self.workspace), self.judge)
        return [call.prefix for offer in offers if offer.kind == "prefix" for call in offer.calls]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.mark.parametrize("line", ["cat SKILL/make.py", "ls SKILL", "grep -r print SKILL", "head -n 3 SKILL/run.sh"])
def test_commands_that_only_look_may_read_a_skill(home: Home, line: str) -> None:
    assert home.judge(home.access(line)).only_looks


@pytest.mark.parametrize(
    "line", ["cat SKILL/link.sh", "cat SKILL/../../../other", "cat SKILL/.env", "echo a > SKILL/make.py"]
)
def test_what_leaves_the_skill_looks_like_a_secret_or_is_written_is_asked_about(home: Home, line: str) -> None:
    assert home.judge(home.access(line)).verdict == "ask"


def test_a_script_is_asked_about_and_may_be_allowed_by_its_beginning(home: Home) -> None:
    asked = home.judge(home.access("SKILL/run.sh a"))
    assert (asked.verdict, asked.risk, asked.reason) == (
        "ask",
        "medium",
        f"{home.scripts}/run.sh is a script of a skill",
    )
    assert home.prefixes("SKILL/run.sh a") == [(f"{home.scripts}/run.sh",)]
    assert home.prefixes("~/.config/errand/skills/report/scripts/run.sh a") == [(f"{home.scripts}/run.sh",)]
    assert home.prefixes("python3 SKILL/make.py a") == [("python3", f"{home.scripts}/make.py")]
    assert home.prefixes("bash SKILL/run.sh a") == [], "it would cover any option of a shell"
    assert home.prefixes("/opt/tool/run.sh a") == []


def test_an_allowed_script_runs_on_files_of_the_workspace_only(home: Home) -> None:
    granted = frozenset(
        GrantedCall(operation="run", prefix=prefix)
        for prefix in ((f"{home.scripts}/run.sh",), ("python3", f"{home.scripts}/make.py"))
    )

    def verdict(line: str) -> str:
        return home.judge(home.access(line), granted).verdict

    for line in ("SKILL/run.sh a b", "python3 SKILL/make.py --out b.txt", "SKILL/run.sh && python3 SKILL/make.py"):
        assert verdict(line) == "allow", line
    for line in (
        "SKILL/run.sh ../x",
        "SKILL/run.sh /etc/passwd",
        "SKILL/run.sh --out .git/config",
        "SKILL/run.sh > b",
        "SKILL/../scripts/run.sh a",
        "SKILL/link.sh a",
        "SKILL/run.sh; rm x",
        "python3 SKILL/other.py",
        "python3 SKILL/make.py ~/notes",
        "python3 -i SKILL/make.py",
    ):
        assert verdict(line) == "ask", line
