"""Deny rules for words that are known only when a line runs."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errand.engine.permissions.command_rules import CommandRule
from errand.engine.permissions.policy import Decision, decide
from errand.engine.permissions.run_time.hidden_commands import hidden_command
from errand.engine.tools.base import Access
from errand.protocol.asks import TYPED, GrantedCall
from errand.protocol.tasks.groups import ApproveMode
from tests.engine.permissions.command_forms import COULD_BE_DENIED, ORDINARY

_DENIED = (("git", "push"), ("touch",))
_RULES = tuple(CommandRule("deny", prefix) for prefix in _DENIED)
_PIECES = sorted({piece for line in (*COULD_BE_DENIED, *ORDINARY) for piece in re.split(r"(\W)", line)})


def _decided(
    line: str, folder: Path, approve: ApproveMode = "all", denied: tuple[tuple[str, ...], ...] = _DENIED
) -> Decision:
    access = Access("run", line, reads=(folder,), command=line, operation="run")
    rules = frozenset(GrantedCall(prefix=prefix) for prefix in denied)
    return decide(access, folder, approve, frozenset(), folder / "private", folder / "home", denied=rules)


@pytest.mark.parametrize("line", COULD_BE_DENIED)
def test_what_could_be_denied_is_denied_where_all_else_is_allowed(line: str, tmp_path: Path) -> None:
    decision = _decided(line, tmp_path)
    assert (decision.verdict, decision.rule) == ("deny", "your deny rule")


@pytest.mark.parametrize("line", ORDINARY)
def test_ordinary_commands_run_beside_a_deny_rule_for_others(line: str, tmp_path: Path) -> None:
    assert _decided(line, tmp_path).verdict == "allow"
    assert _decided(line, tmp_path, "ask") == _decided(line, tmp_path, "ask", denied=())


def test_a_word_known_only_at_run_time_asks_and_names_the_rule(tmp_path: Path) -> None:
    decision = _decided("git $(echo push)", tmp_path, "ask")
    assert (decision.verdict, decision.rule, decision.modes, decision.grantable) == ("ask", "your deny rule", (), None)
    assert decision.reason == "`git …` is known only when it runs: it could be `git push`, which you denied"
    assert [_decided("git $(echo push)", tmp_path, mode).verdict for mode in ("never", "plan")] == ["deny"] * 2


def test_a_grant_for_the_very_text_does_not_lift_the_question(tmp_path: Path) -> None:
    line = "git $(echo push)"
    access = Access("run", line, reads=(tmp_path,), command=line, operation="run")
    grant = GrantedCall(operation="run", command=line, working_dir=str(tmp_path))
    denied = frozenset((GrantedCall(prefix=("git", "push")),))
    decision = decide(access, tmp_path, "ask", frozenset((grant,)), tmp_path / "private", denied=denied)
    assert decision.verdict == "ask"


def test_without_a_deny_rule_for_commands_nothing_changes(tmp_path: Path) -> None:
    for line in COULD_BE_DENIED:
        assert hidden_command(line, (CommandRule("allow", ("touch",)),), str(tmp_path)) is None


@pytest.mark.parametrize(
    ("prefix", "line", "could_be"),
    [
        (("npm", "run", "deploy"), 'npm run "$x"', True),
        (("npm", "run", "deploy"), "npm $x", True),
        (("npm", "run", "deploy"), 'npm run build "$x"', False),
        (("npm", "run", "deploy"), 'npm --loglevel warn "$x" deploy', True),
        (("kubectl", "delete"), 'kubectl -n "$ns" get pods', False),
        (("kubectl", "delete"), 'kubectl -n "$ns" $verb pods', True),
        (("rm", "-rf"), 'rm "$flags" a', True),
        (("rm", "-rf"), 'rm a "$b"', False),
        (("docker", "push"), 'docker "$x" image', True),
        (("docker", "push"), 'docker build -t "$x" .', False),
        (("curl",), 'git log "$x"', False),
        (("curl",), "xargs -a urls curl", True),
    ],
)
def test_only_the_places_of_the_words_of_a_rule_count(prefix: tuple[str, ...], line: str, could_be: bool) -> None:
    assert (hidden_command(line, (CommandRule("deny", prefix),), "/w") is not None) == could_be


@pytest.mark.parametrize(
    ("typed", "verdict"),
    [
        ("touch a<enter>", "deny"),
        ("$x a<enter>", "deny"),
        ("ls\ngit pu", "deny"),
        ("tou", "deny"),
        ("y<enter>", "allow"),
        ("q", "allow"),
        ("ls -l<enter>", "allow"),
        ("<down><enter>", "allow"),
    ],
)
def test_what_is_typed_into_a_program_may_not_be_a_denied_command(typed: str, verdict: str, tmp_path: Path) -> None:
    access = Access("run", "Type", operation="code", code=typed, language=TYPED)
    rules = frozenset(GrantedCall(prefix=prefix) for prefix in _DENIED)
    decision = decide(access, tmp_path, "all", frozenset(), tmp_path / "private", denied=rules)
    assert decision.verdict == verdict


@given(st.lists(st.sampled_from(_PIECES), max_size=30).map("".join))
def test_any_text_is_searched_without_an_error(line: str) -> None:
    hidden_command(line, _RULES, "/w")
