"""`errand memory` in the terminal: search, state, pruning, rebuilding; and what a killed engine leaves."""

import asyncio
import re
import signal
import sys
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from errand.protocol.base import JsonObject
from tests.support.command_line import Errand
from tests.support.limits import WAIT_LIMIT_S
from tests.support.minilm import has_simple_model
from tests.support.model_server import ModelServer, Reply
from tests.support.web_site import web_site

CHAT = ("run", "--approve", "all", "--model", "openai_compatible/test-model", "--api-base")
SAID = ("the tide tables of the harbour are in /srv/tides.csv", "the printer in the hall needs toner")


async def talk(errand: Errand, *texts: str) -> None:
    async with ModelServer(answer=lambda request: Reply(text="Noted.")) as server:
        for text in texts:
            assert (await errand.run(*CHAT, server.url, text)).code == 0
    await indexed(errand)


async def indexed(errand: Errand) -> JsonObject:
    async with asyncio.timeout(WAIT_LIMIT_S):
        while True:
            (stats,) = (await errand.run("memory", "stats", "--json")).lines
            if not stats["toIndex"]:
                return stats
            await asyncio.sleep(0.1)


async def test_what_was_said_is_found_shown_and_counted(own_errand: Errand) -> None:
    await talk(own_errand, *SAID)
    results = await own_errand.run("memory", "search", "where are the tide tables?", "--limit", "1")
    assert results.code == 0
    assert "User" in results.out and "/srv/tides.csv" in results.out and "toner" not in results.out
    assert "Only words were searched" in results.err
    number = re.findall(r"^(\d+) ", results.out, re.MULTILINE)[0]
    entry = await own_errand.run("memory", "show", number)
    assert SAID[0] in entry.out
    state = await own_errand.run("memory", "stats")
    assert re.search(r"entries +4\b", state.out) and "embedding model" in state.out


async def test_equal_texts_are_printed_once_with_their_number_and_an_older_statement_says_so(
    own_errand: Errand,
) -> None:
    plans = ("my phone plan costs $12.99 a month", "my phone plan costs $14.99 a month")
    await talk(own_errand, *["the phone plan is paid"] * 3, *plans)
    results = await own_errand.run("memory", "search", "phone plan")
    assert results.out.count("the phone plan is paid") == 1 + results.out.count("· the phone plan is paid ·")
    assert re.search(r"^\d+ .* · 3 times$", results.out, re.MULTILINE)
    newer, older = (results.out.index(f"   {plan}") for plan in reversed(plans))
    assert newer < older and "· older statement" in results.out[newer:older]


async def test_a_search_is_narrowed_by_kind_and_time(own_errand: Errand) -> None:
    await talk(own_errand, "the tide tables are noted")

    async def found(*options: str) -> list[str]:
        done = await own_errand.run("memory", "search", "noted tables", "--json", *options)
        return sorted(str(hit["role"]) for hit in done.lines)

    assert await found() == ["agent", "user"]
    assert await found("--kind", "replies") == ["agent"]
    assert await found("--kind", "replies", "--kind", "messages") == ["agent", "user"]
    assert await found("--after", "8h") == ["agent", "user"]
    assert await found("--after", "2001", "--before", "2002-03") == []
    nothing = await own_errand.run("memory", "search", "noted", "--before", "2002")
    assert "Try other words or fewer filters." in nothing.err


async def test_wrong_words_are_answered_with_advice(own_errand: Errand) -> None:
    for arguments, advice in (
        (("show", "x"), "not the number of an entry"),
        (("show", "99"), "There is no entry 99"),
        (("prune", "soon"), "an age such as 90d"),
        (("search",), "errand memory search"),
        (("search", "x", "--after", "soon"), "an age such as 8h or 30d"),
        (("search", "x", "--kind", "dreams"), "invalid choice"),
        (("dance",), "memory has no 'dance'"),
    ):
        done = await own_errand.run("memory", *arguments)
        assert done.code != 0 and advice in done.err and "Traceback" not in done.err


async def test_pruning_and_rebuilding_say_what_they_did(own_errand: Errand) -> None:
    await talk(own_errand, *SAID)
    assert "3 vectors removed" in (await own_errand.run("memory", "prune", "1")).out
    assert "0 vectors removed" in (await own_errand.run("memory", "prune", "9000d")).out
    assert "Rebuilt: 4 entries" in (await own_errand.run("memory", "rebuild")).out
    log = (await own_errand.run("memory", "log")).out
    assert "rebuilt" in log and "pruned" in log


async def test_an_engine_killed_while_it_indexes_goes_on_where_it_was(own_errand: Errand) -> None:
    await talk(own_errand, *SAID)
    for _ in range(3):
        await own_errand.run("memory", "rebuild", "--json")
        own_errand.kill_engine()
        await talk(own_errand, "one more thing about the harbour")
    stats = await indexed(own_errand)
    assert stats["entries"] == 2 * (len(SAID) + 3)
    assert "/srv/tides.csv" in (await own_errand.run("memory", "search", "tide tables")).out


async def test_what_was_recalled_is_named_in_the_transcript(own_errand: Errand) -> None:
    await talk(own_errand, SAID[0])
    async with ModelServer(answer=lambda request: Reply(text="There.")) as server:
        done = await own_errand.run(*CHAT, server.url, "where are the tide tables of the harbour?")
        request = await server.request(0)
    assert "Recalled 1 earlier entry from memory" in done.out + done.err
    assert "/srv/tides.csv" in str(request.messages[-1]["content"])


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals of POSIX")
async def test_the_model_is_offered_in_one_line_once_and_where_somebody_reads_it(own_errand: Errand) -> None:
    from tests.support.screens import PseudoTerminal

    del own_errand.environment["HF_HUB_OFFLINE"]  # nothing is downloaded, as nobody asks for it
    own_errand.environment.pop("CI", None)
    if "the package fastembed is not installed" in (await own_errand.run("doctor")).out.lower():
        pytest.skip("fastembed is not installed")
    await talk(own_errand, *SAID)
    async with ModelServer(answer=lambda request: Reply(text="There.")) as server:
        ask = (*CHAT, server.url, "where are the tide tables of the harbour?")
        piped = await own_errand.run(*ask)
        assert "Search by meaning" not in piped.out + piped.err
        for is_first in (True, False):
            async with PseudoTerminal(ask, own_errand.folder, own_errand.environment) as terminal:
                if is_first:
                    await terminal.shows("Search by meaning needs a 91 MB download from huggingface.co")
                assert await terminal.ended() == 0
                assert is_first or "Search by meaning" not in terminal.seen
    assert "searched by words alone. Search by meaning needs" in (await own_errand.run("doctor")).out
    assert not (own_errand.home / "embedding.part").exists()


async def test_the_simple_model_searches_by_meaning_until_a_better_one_is_there(own_errand: Errand) -> None:
    if not has_simple_model():
        pytest.skip("wordllama is not installed, or its process cannot be started here")
    for name in ("HF_HUB_OFFLINE", "ERRAND_SIMPLE_MODEL"):
        own_errand.environment.pop(name, None)
    await talk(own_errand, "The feline slept on the sofa all day", "Interest rates rose by half a percent")
    async with asyncio.timeout(WAIT_LIMIT_S):
        while (await indexed(own_errand))["toEmbed"]:  # noqa: ASYNC110 -- another process sets no event
            await asyncio.sleep(0.1)
    results = await own_errand.run("memory", "search", "which couch did our cat sleep upon?", "--limit", "1")
    assert "The feline slept" in results.out and results.err == ""
    state = await own_errand.run("memory", "stats")
    assert "simple, built in; for a better one: errand memory download" in state.out
    assert "Search by meaning uses a simple built-in model. A better one is a 91 MB" in await doctor(own_errand)
    own_errand.environment["ERRAND_SIMPLE_MODEL"] = "off"
    await own_errand.run("engine", "--stop")
    assert "searched by words alone." in await doctor(own_errand)


async def doctor(errand: Errand) -> str:
    return " ".join((await errand.run("doctor")).out.split())


@pytest.mark.skipif(sys.platform == "win32", reason="a signal of POSIX")
async def test_an_interrupt_cancels_the_download_of_the_model(own_errand: Errand) -> None:
    del own_errand.environment["HF_HUB_OFFLINE"]
    if "the package fastembed is not installed" in (await own_errand.run("doctor")).out.lower():
        pytest.skip("fastembed is not installed")
    has_begun, is_cancelled = asyncio.Event(), asyncio.Event()

    async def endless(request: web.Request) -> web.StreamResponse:
        has_begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            is_cancelled.set()
        raise AssertionError

    path = "/Qdrant/all-MiniLM-L6-v2-onnx/resolve/5f1b8cd78bc4fb444dd171e59b18f3a3af89a079/config.json"
    async with asyncio.timeout(WAIT_LIMIT_S), web_site({path: endless}) as hub:
        assert (await own_errand.run("settings", "set", "model_hub", hub.url("").rstrip("/"))).code == 0
        process = await own_errand.start("memory", "download")
        await has_begun.wait()
        process.send_signal(signal.SIGINT)
        await process.wait()
        await is_cancelled.wait()
    (stats,) = (await own_errand.run("memory", "stats", "--json")).lines
    assert stats["model"]["status"] == "missing"  # type: ignore[index, call-overload]


async def numbers_of(errand: Errand, *texts: str) -> list[str]:
    hits = [(await errand.run("memory", "search", text, "--limit", "1", "--json")).lines[0] for text in texts]
    return [str(hit["number"]) for hit in hits]


async def test_an_entry_that_is_edited_becomes_a_fact_and_its_message_is_forgotten(own_errand: Errand) -> None:
    await talk(own_errand, *SAID)
    (number,) = await numbers_of(own_errand, SAID[0])
    right = "The tide tables are in /srv/tides-2027.csv"
    edited = await own_errand.run("memory", "edit", number, right, "--yes")
    assert edited.code == 0 and right in edited.out
    (fact,) = (await own_errand.run("memory", "facts", "--json")).lines
    assert (fact["text"], fact["scope"], fact["folder"]) == (right, "folder", str(own_errand.folder))
    hits = (await own_errand.run("memory", "search", "tide tables", "--json")).lines
    assert not any("tides.csv" in str(hit["text"]) for hit in hits)


async def test_an_entry_that_two_edit_at_once_becomes_one_fact(own_errand: Errand) -> None:
    await talk(own_errand, *SAID)
    (number,) = await numbers_of(own_errand, SAID[0])
    texts = [f"The tide tables are in /srv/tides-{year}.csv" for year in (2027, 2028)]
    edits = await asyncio.gather(*(own_errand.run("memory", "edit", number, text, "--yes") for text in texts))
    (fact,) = (await own_errand.run("memory", "facts", "--json")).lines
    assert [edit.code for edit in edits].count(0) == 1
    assert fact["text"] == texts[[edit.code for edit in edits].index(0)]


async def test_an_edit_that_comes_too_late_keeps_the_fact_of_that_text(own_errand: Errand) -> None:
    await talk(own_errand, *SAID)
    (number,) = await numbers_of(own_errand, SAID[0])
    text = "The tide tables are in /srv/tides-2027.csv"
    assert (await own_errand.run("memory", "pin", text)).code == 0
    edits = await asyncio.gather(
        *(own_errand.run("memory", "edit", number, text, "--scope", "always", "--yes") for _ in range(2))
    )
    assert 0 in [edit.code for edit in edits]
    assert [fact["text"] for fact in (await own_errand.run("memory", "facts", "--json")).lines] == [text]


async def test_facts_of_different_folders_are_merged_where_the_person_says(own_errand: Errand) -> None:
    own = ("--folder", str(own_errand.folder))
    assert (await own_errand.run("memory", "pin", "The client is in Zwolle", *own)).code == 0
    assert (await own_errand.run("memory", "pin", "Answer in Dutch")).code == 0
    first, second = [str(line["id"]) for line in (await own_errand.run("memory", "facts", "--json")).lines]
    refused = await own_errand.run("memory", "merge", first, second, "The client in Zwolle is Dutch")
    assert refused.code == 2 and "--scope or --folder" in refused.err
    assert (await own_errand.run("memory", "merge", first, second, "The client in Zwolle is Dutch", *own)).code == 0
    (fact,) = (await own_errand.run("memory", "facts", "--json")).lines
    assert (fact["scope"], fact["folder"]) == ("folder", str(own_errand.folder))


async def test_two_entries_and_two_facts_are_merged_into_one(own_errand: Errand) -> None:
    await talk(own_errand, *SAID)
    numbers = await numbers_of(own_errand, *SAID)
    both = "Tide tables: /srv/tides.csv. Printer in the hall: toner."
    assert (await own_errand.run("memory", "merge", *numbers, both, "--yes")).code == 0
    own = ("--folder", str(own_errand.folder))
    assert (await own_errand.run("memory", "pin", "The printer is a laser", *own)).code == 0
    (first, second) = [str(line["id"]) for line in (await own_errand.run("memory", "facts", "--json")).lines]
    assert (await own_errand.run("memory", "merge", first, second, "The printer in the hall is a laser")).code == 0
    facts = (await own_errand.run("memory", "facts", "--json")).lines
    assert [fact["text"] for fact in facts] == ["The printer in the hall is a laser"]
    wrong = await own_errand.run("memory", "merge", first, first, "The same")
    assert wrong.code != 0 and "same fact" in wrong.err


async def test_memory_is_exported_as_json_lines_and_as_markdown(own_errand: Errand, tmp_path: Path) -> None:
    long = "a remark about the lighthouse " * 60
    await talk(own_errand, SAID[0], f"# not a heading\n{long}")
    assert (await own_errand.run("memory", "pin", "Answer in German.")).code == 0
    lines, text = tmp_path / "memory.jsonl", tmp_path / "memory.md"
    done = await own_errand.run("memory", "export", str(lines))
    assert done.code == 0 and "4 entries" in done.out
    rows = [msgspec.json.decode(line) for line in lines.read_bytes().splitlines()]
    assert [row["kind"] for row in rows] == ["fact", *["entry"] * 4]
    assert any(row["text"].endswith(long.strip()) for row in rows)
    assert (await own_errand.run("memory", "export", str(lines))).code != 0
    assert (await own_errand.run("memory", "export", str(text))).code == 0
    written = text.read_text(encoding="utf-8")
    assert "- Answer in German. (always)" in written and "> # not a heading" in written and SAID[0] in written
