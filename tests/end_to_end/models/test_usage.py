"""Behaviours 130 and 131: usage in the terminal, and tests of providers."""

import msgspec

from errand.protocol.context import ContextExplainResult
from errand.protocol.usage import UsageReportResult
from tests.support.command_line import Errand
from tests.support.model_server import ModelServer, Reply

MODEL = ("--model", "openai_compatible/test-model", "--api-base")


async def test_what_a_task_used_is_in_the_table_and_in_the_report_for_programs(own_errand: Errand) -> None:
    assert (await own_errand.run("usage")).out == "No usage in this period.\n"
    async with ModelServer(replies=[Reply(text="Done.", usage=(1200, 30))]) as server:
        assert (await own_errand.run("run", *MODEL, server.url, "count the files")).code == 0
    table = (await own_errand.run("usage", "--by", "conversation")).out.splitlines()
    assert table[0].split() == ["conversation", "money", "tokens", "in", "out", "cached", "turns", "tasks"]
    assert table[1].split() == ["count", "the", "files", "?", "1,200", "30", "0", "1", "1"]
    assert table[3] == "The price of 1 turn is unknown and not included."
    by_day = await own_errand.run("usage", "--days", "1", "--json")
    report = msgspec.json.decode(by_day.out, type=UsageReportResult)
    assert (report.total.turns, report.models[0].key) == (1, "openai_compatible/test-model")


async def test_a_provider_is_tried_and_the_exit_code_says_whether_it_works(own_errand: Errand) -> None:
    replies = [Reply(text="OK"), Reply(status=401, error="no")]
    async with ModelServer(replies=replies) as server:
        key = {"OPENAI_API_KEY": "sk-of-the-test", "OPENAI_BASE_URL": server.url}
        good = await own_errand.run("models", "--test", "openai", variables=key)
        bad = await own_errand.run("models", "--test", variables=key)
    assert (good.code, "openai/gpt-5.4  gpt-5.4 answered in" in good.out) == (0, True)
    assert (bad.code, "OpenAI refused the key (401)" in bad.out) == (1, True)


async def test_a_reply_that_was_tried_again_fills_the_context_once_and_is_marked_as_an_estimate(
    own_errand: Errand,
) -> None:
    broken = Reply(text="The first half of it", cut_after=2)
    async with ModelServer(replies=[broken, Reply(text="Done.")]) as server:
        done = await own_errand.run("run", *MODEL, server.url, "count the files")
    task = (await own_errand.run("tasks", "--json")).lines[0]
    context = await own_errand.run("context", str(task["id"]), "--json")
    used = task["usage"]
    assert done.code == 0, done.err
    assert isinstance(used, dict)
    sent = used["inputTokens"]
    assert isinstance(sent, int)
    assert used["estimated"] is True
    assert "1 turn · ~" in done.out
    assert msgspec.json.decode(context.out, type=ContextExplainResult).used_tokens < sent
    assert (await own_errand.run("usage")).out.splitlines()[1].split()[2] == f"~{sent:,}"
