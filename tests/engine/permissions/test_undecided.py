"""What cannot be judged is asked about: a missing grammar, a parser that takes too long, an error on the way."""

import sys
from pathlib import Path

import pytest

from errand.engine.permissions import policy
from errand.engine.permissions.policy import Decision, decide
from errand.engine.permissions.shell import grammar
from errand.engine.permissions.shell.grammar import load_grammar
from errand.engine.tools.base import Access
from errand.protocol.tasks.groups import ApproveMode


def judge(folder: Path, line: str = "ls -la | head", approve: ApproveMode = "ask") -> Decision:
    access = Access("run", line, reads=(folder,), command=line, operation="run")
    return decide(access, folder, approve, frozenset(), folder.parent / "private", folder.parent / "home")


def test_without_the_grammar_every_command_is_asked_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_grammar.cache_clear()
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "tree_sitter_bash", None)
        asked, floor = judge(tmp_path), judge(tmp_path, "rm -rf /")
    assert (asked.verdict, asked.rule, asked.reason) == ("ask", "grammar", "the shell grammar is not installed")
    assert floor.verdict == "deny"
    assert judge(tmp_path).verdict == "allow"


def test_a_line_that_takes_too_long_to_parse_is_asked_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = f"ls {'a ' * 200}"
    assert judge(tmp_path, line).verdict == "allow"
    monkeypatch.setattr(grammar, "PARSE_TIMEOUT_S", -1.0)
    asked = judge(tmp_path, line)
    assert (asked.verdict, asked.rule, asked.reason) == ("ask", "grammar", "the line takes too long to read")


@pytest.mark.parametrize("error", [ValueError, OSError, KeyError, RecursionError, MemoryError, AssertionError])
@pytest.mark.parametrize(("approve", "verdict"), [("ask", "ask"), ("all", "deny"), ("never", "deny")])
def test_an_error_during_the_decision_never_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception], approve: ApproveMode, verdict: str
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(policy, "judge_command", fail)
    decision = judge(tmp_path, approve=approve)
    assert (decision.verdict, decision.risk, decision.rule) == (verdict, "high", "unchecked text")


def test_a_path_that_cannot_be_read_as_one_is_asked_about(tmp_path: Path) -> None:
    access = Access("read", "Read", reads=(Path("a\0b"),), operation="read")
    assert decide(access, tmp_path, "ask", frozenset(), tmp_path / "x", tmp_path / "y").verdict == "deny"
    assert judge(Path("a\0b")).verdict == "ask"
