"""The permission cases: none is decided too permissively, and all get an accepted answer."""

from pathlib import Path

import msgspec
import pytest

from errand.engine.permissions.shell.scanner import scan
from errand.protocol.base import JsonObject, JsonValue
from tests.conformance.permissions import ATTACKS, FILE, WIRE_ATTACKS, macro_recall, main, read, report, run, run_wire

_CONTEXT: JsonObject = {"workspace": "{{WS}}", "cwd": "{{WS}}", "home": "{{HOME}}"}


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
    commands = scan(f"a=xxxxxxxx; {f'{variable}; ' * 200}rm -rf $a; rm -rf /", {})
    assert sum(len(word) for command in commands for word in command.argv) < 1_000_000
    assert commands[-1].argv == ["rm", "-rf", "/"]


async def test_the_engine_serves_and_refuses_wire_requests_as_the_cases_say(tmp_path: Path) -> None:
    outcomes, left_out = await run_wire(read(FILE), tmp_path)
    assert (len(outcomes), len(left_out)) == (52, 4)
    assert [(outcome.case.id, outcome.decision, outcome.text) for outcome in outcomes if not outcome.passed] == []


async def test_attacks_on_asks_and_tokens_are_refused_without_effect(tmp_path: Path) -> None:
    outcomes, left_out = await run_wire(read(WIRE_ATTACKS), tmp_path)
    assert (len(outcomes), len(left_out)) == (37, 0)
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


def _case(number: int, kind: str, case_input: JsonObject, expected: str, **context: JsonValue) -> JsonObject:
    return {
        "id": f"{kind}-{number}",
        "kind": kind,
        "input": case_input,
        "context": {**_CONTEXT, **context},
        "expected": expected,
    }


def _raws(*cases: JsonObject) -> list[msgspec.Raw]:
    return [msgspec.Raw(msgspec.json.encode(case)) for case in cases]


def test_a_case_may_put_links_in_place_of_its_workspace_and_have_hard_links(tmp_path: Path) -> None:
    links: JsonValue = [{"path": "{{WS}}", "type": "symlink", "target": "{{HOME}}/real"}]
    other: JsonValue = [{"path": "{{WS}}", "type": "symlink", "target": "{{REALWS}}"}]
    hard: JsonValue = [
        {"path": "{{WS}}/sub/note", "type": "hardlink", "target": "{{HOME}}/note"},
        {"path": "{{WS}}/far", "type": "hardlink", "target": "/nonexistent/far"},
    ]
    outcomes = run(
        _raws(
            _case(1, "path", {"path": "{{HOME}}/real/a"}, "allow", fs=links),
            _case(2, "path", {"path": "{{WS}}/a"}, "allow", fs=links),
            _case(3, "path", {"path": "{{REALWS}}/a"}, "allow", fs=other),
            _case(4, "path", {"path": "{{HOME}}/a"}, "ask", fs=links),
            _case(5, "shell", {"command": "cat sub/note far"}, "allow", fs=hard),
            _case(6, "path", {"path": "/proc/1/cwd/a"}, "deny"),
            _case(7, "shell", {"command": "cat /proc/1/root/a"}, "deny"),
        ),
        tmp_path,
    )
    assert [(outcome.case.id, outcome.text) for outcome in outcomes if not outcome.passed] == []


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "allow"),
        ({"revoked": True}, "ask"),
        ({"revoked_at": "2026-01-01T00:00:00Z"}, "ask"),
        ({"scope": "once"}, "ask"),
        ({"scope": "session", "session": "a"}, "allow"),
        ({"scope": "conversation", "session": "b"}, "ask"),
        ({"scope": "user", "workspace": "/elsewhere"}, "allow"),
        ({"source": "repository"}, "ask"),
        ({"source": "agent"}, "ask"),
        ({"source": "user"}, "allow"),
        ({"cwd": "{{HOME}}"}, "ask"),
        ({"match": "pattern"}, "ask"),
        ({"decision": "deny", "source": "repository"}, "deny"),
        ({"decision": "deny", "revoked": True}, "ask"),
    ],
)
def test_every_field_of_a_remembered_decision_counts(fields: JsonObject, expected: str, tmp_path: Path) -> None:
    rule: JsonObject = {"tool": "shell", "match": "prefix", "argv": ["make", "lint"], "decision": "allow", **fields}
    case = _case(1, "shell", {"command": "make lint"}, expected, remembered=[rule], session="a")
    (outcome,) = run(_raws(case), tmp_path)
    assert (outcome.decision, outcome.text) == (expected, outcome.text)


async def test_wire_cases_take_fragments_in_every_form_and_say_whether_they_ran(tmp_path: Path) -> None:
    request = '{"id":1,"method":"session.list","params":{}}'
    forms: list[JsonValue] = [
        [request[:9], request[9:]],
        {"parts": [request[:20], request[20:]]},
        {"text": request, "count": 5},
        {"json": msgspec.json.decode(request), "size_bytes": 7},
        request,
    ]
    base_input: JsonObject = {"transport": "ws", "headers": [["Host", "127.0.0.1:8765"]], "token": "TOKEN_DESKTOP"}
    steps: list[JsonValue] = [[{"send_fragments": form}] for form in forms]
    cases = [_case(number, "ws", {**base_input, "steps": each}, "allow") for number, each in enumerate(steps)]
    long: JsonObject = {**base_input, "steps": [{"wait_s": 60}]}
    outcomes, left_out = await run_wire(_raws(*cases, _case(9, "ws", long, "allow")), tmp_path)
    assert [(outcome.case.id, outcome.text) for outcome in outcomes if not outcome.passed] == []
    lines = list(report(outcomes, left_out))
    assert lines[0] == "ws-0: ran against an engine, allow"
    assert "ws-9: not run, it has a step that is not known, or waits longer than 6 s" in lines
