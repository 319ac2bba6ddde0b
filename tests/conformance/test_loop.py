"""Every scenario of the conformance file passes, in every profile with an expectation for it."""

from pathlib import Path

import msgspec
import pytest

from tests.conformance.loop import differences, main, read
from tests.conformance.scenario import PROFILES, Case

FILE = Path(__file__).with_name("loop.json")

CASES = [msgspec.json.decode(raw, type=Case) for raw in read(FILE)]


@pytest.mark.parametrize("case", CASES, ids=[case.scenario.name for case in CASES])
async def test_scenario_gives_the_recorded_trace(case: Case) -> None:
    assert await differences(case, [profile for profile in PROFILES if profile in case.expected]) == []


def test_command_names_the_first_difference_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = msgspec.json.decode(FILE.read_bytes())["scenarios"][0]
    case["expected"]["modern"]["final_error"] = "boom"
    changed = tmp_path / "changed.json"
    changed.write_bytes(msgspec.json.encode({"scenarios": [case, {"scenario": 1}]}))

    code = main([str(changed), "--profile", "modern"])

    printed = capsys.readouterr().out
    assert code == 1
    assert 'text_only_stream [modern]: trace.final_error\n    ours:   null\n    theirs: "boom"' in printed
    assert printed.endswith("0 passed, 2 failed\n")
