"""The permission cases: none is decided too permissively, and all get an accepted answer."""

from pathlib import Path

import msgspec
import pytest

from errand.engine.permissions.shell.scanner import scan
from tests.conformance.permissions import ATTACKS, FILE, WIRE_ATTACKS, macro_recall, main, read, run, run_wire


def test_no_case_is_too_permissive_and_all_are_accepted(tmp_path: Path) -> None:
    outcomes = run(read(FILE), tmp_path)
    assert len(outcomes) == 305
    assert [outcome.case.id for outcome in outcomes if outcome.too_permissive] == []
    assert [(outcome.case.id, outcome.text) for outcome in outcomes if not outcome.passed] == []
    assert macro_recall(outcomes) == 1.0


def test_attacks_on_the_policy_get_an_accepted_answer(tmp_path: Path) -> None:
    """Written by somebody who had not built it: each was once decided wrongly, or is a neighbour of one that was."""
    outcomes = run(read(ATTACKS), tmp_path)
    assert len(outcomes) == 901
    assert [(outcome.case.id, outcome.text) for outcome in outcomes if not outcome.passed] == []


@pytest.mark.parametrize("variable", ["a=$a$a", "a=${a}${a}", 'export a="$a$a"'])
def test_values_that_double_are_not_inserted_without_bound(variable: str) -> None:
    found = scan(f"a=xxxxxxxx; {f'{variable}; ' * 200}rm -rf $a; rm -rf /", {})
    assert sum(len(word) for command in found for word in command.words) < 1_000_000
    assert found[-1].words == ["rm", "-rf", "/"]


async def test_the_engine_serves_and_refuses_wire_requests_as_the_cases_say(tmp_path: Path) -> None:
    outcomes, left_out = await run_wire(read(FILE), tmp_path)
    assert (len(outcomes), left_out.total()) == (51, 5)
    assert [(outcome.case.id, outcome.decision, outcome.text) for outcome in outcomes if not outcome.passed] == []


async def test_attacks_on_asks_and_tokens_are_refused_without_effect(tmp_path: Path) -> None:
    outcomes, left_out = await run_wire(read(WIRE_ATTACKS), tmp_path)
    assert (len(outcomes), left_out.total()) == (37, 0)
    assert [(outcome.case.id, outcome.decision, outcome.text) for outcome in outcomes if not outcome.passed] == []


def test_the_command_says_what_failed_and_what_was_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = msgspec.json.decode(FILE.read_bytes())
    case = next(case for case in cases if case["kind"] == "shell" and case["expected"] == "allow")
    pages = (case for case in cases if case["kind"] == "ws" and case["input"]["transport"] == "http")
    wire = next(case for case in pages if case["expected"] == "allow")
    file = tmp_path / "changed.json"
    file.write_bytes(msgspec.json.encode([{**case, "expected": "deny"}, wire]))

    code = main([str(file)])

    printed = capsys.readouterr().out
    assert code == 1
    assert "wanted deny, got allow (read-only command" in printed
    assert "not run: 1 wire cases, the engine serves nothing over HTTP\n" in printed
    assert printed.endswith("too permissive: 1\nmacro recall: 0.000\n0 passed, 1 failed\n")
