"""Tool calls that are expensive to check: the task continues in time, and the engine stays responsive."""

from pathlib import Path

import pytest

from tests.attacks.campaign import Campaign
from tests.support.command_line import Errand
from tests.support.model_server import Call, ModelServer, Reply

# So many different characters that difflib treats none as junk: each comparison then takes quadratic time.
_LETTERS = [chr(0x4E00 + number) for number in range(150)]
_LENGTH = 100_000


def _shuffled(campaign: Campaign, name: str) -> str:
    return "".join(campaign.random(name).choices(_LETTERS, k=_LENGTH))


async def _run(errand: Errand, call: Call) -> str:
    """The output of the run; the command has half a minute."""
    replies = [Reply(calls=(call,), piece_length=1_000_000), Reply(text="I go on.")]
    async with ModelServer(replies=replies) as server:
        model = ("--model", "openai_compatible/test-model", "--api-base", server.url)
        done = await errand.run("run", "--approve", "all", *model, "work")
    assert "I go on." in done.out, done.err
    return done.out


async def test_a_long_text_to_replace_that_is_not_there_is_refused_in_time(
    errand: Errand, workspace: Path, campaign: Campaign
) -> None:
    (workspace / "f.txt").write_text(_shuffled(campaign, "the file"), "utf-8")
    arguments = {"action": "patch", "path": "f.txt", "old": _shuffled(campaign, "what is looked for"), "new": "x"}
    assert "text to replace not found" in await _run(errand, Call("code", {**arguments}))


@pytest.mark.parametrize(
    "line",
    ["env " * 25_000 + "rm", "sudo rm " * 10_000, "eval " * 11_000 + "rm", "env " + "sh -c 'rm a' " * 7_000],
    ids=["env env", "sudo rm", "eval eval", "sh -c"],
)
async def test_a_command_that_cannot_be_checked_in_time_is_not_run(errand: Errand, line: str) -> None:
    assert "Not allowed: the command is too long or too" in await _run(errand, Call("shell", {"command": line}))


async def test_a_long_file_of_a_heredoc_still_runs(errand: Errand, workspace: Path) -> None:
    body = "".join(f"line {number}: remove it, find it, 'quoted' (and more)\n" for number in range(1_500))
    await _run(errand, Call("shell", {"command": f"cat > f <<'EOF'\n{body}EOF\n"}))
    assert (workspace / "f").read_text("utf-8") == body


async def test_a_number_of_many_digits_is_refused_in_time(errand: Errand) -> None:
    out = await _run(errand, Call("shell", {"command": "true", "timeout_secs": "1" * 200_000 + "x"}))
    assert "Validation failed" in out
