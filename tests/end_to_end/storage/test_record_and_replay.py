"""13. A task is recorded and replayed from the command line."""

from tests.support.command_line import Errand
from tests.support.model_replies import DONE, shell
from tests.support.model_server import ModelServer


async def test_a_task_is_recorded_and_played_again(errand: Errand) -> None:
    async with ModelServer(replies=[shell("echo hello"), DONE]) as model:
        options = ("--approve", "all", "--model", "openai_compatible/test-model", "--api-base", model.url)
        key = {"RECORD_KEY": "sk-never-to-be-seen"}
        ran = await errand.run("run", *options, "--api-key-env", "RECORD_KEY", "--json", "say hello", variables=key)
    assert ran.code == 0, ran.err
    task_id = str(ran.lines[-1]["id"])
    file = errand.folder / "hello.jsonl"
    recorded = await errand.run("record", task_id, "--to", str(file))
    assert recorded.code == 0, recorded.err
    assert "sk-never-to-be-seen" not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    played = await errand.run("replay", str(file))
    assert (played.code, played.out) == (0, "2 turns: the loop does today what it did then.\n")
    file.write_text(file.read_text().replace("</environment> say hello", "</environment> say goodbye"))
    changed = await errand.run("replay", str(file))
    assert (changed.code, "--- recorded" in changed.out) == (1, True)
    assert (await errand.run("record", task_id, "--to", str(file))).code == 2


async def test_what_is_no_record_is_said(errand: Errand) -> None:
    (errand.folder / "none.jsonl").write_text("{}\n")
    refused = await errand.run("replay", "none.jsonl")
    assert (refused.code, "Line 1 is not one of a record" in refused.err) == (2, True)
    assert (await errand.run("replay", "nowhere.jsonl")).code == 2
