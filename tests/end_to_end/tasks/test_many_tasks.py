"""Behaviours 16 to 22: several tasks and clients at once, the tour, the lists, keys and the doctor."""

import asyncio

from tests.support.command_line import Errand, rest
from tests.support.model_server import ModelServer, Reply

MODEL = ("--model", "openai_compatible/test-model", "--api-base")


async def test_the_tour_runs_three_tasks_without_a_person_and_without_a_key(errand: Errand) -> None:
    done = await errand.run()
    assert done.code == 0, done.err
    assert "No display was found: Errand runs in the terminal." in done.out
    assert "scripted replies, real tools" in done.out
    assert done.out.count("task complete") == 3
    assert "No terminal input: the tour answers: friendly" in done.out
    assert "No terminal input: the tour allows it once" in done.out
    assert "3 of 3 tasks complete." in done.out
    (folder,) = (errand.home / "workspaces").glob("tour-*")
    assert "friendly" in (folder / "WELCOME.md").read_text()
    assert "discount_percent / 100" in (folder / "shop" / "basket.py").read_text()
    assert not (folder / "build").exists()
    assert "There is no build" not in done.out, "resources/tour/workspace/build is missing"


async def test_tasks_of_several_terminals_run_at_once(errand: Errand) -> None:
    gate = asyncio.Event()
    async with ModelServer(answer=lambda request: Reply(text="done", gate=gate)) as server:
        runs = [await errand.start("run", *MODEL, server.url, f"task {number}") for number in range(4)]
        await server.request(3)
        gate.set()
        done = [await rest(run) for run in runs]
    assert [run.code for run in done] == [0, 0, 0, 0]


async def test_tasks_are_listed_and_their_words_are_found(errand: Errand) -> None:
    async with ModelServer(replies=[Reply(text="The harbour master is called Ingrid.")]) as server:
        await errand.run("run", *MODEL, server.url, "who is it?")
    tasks, results, as_json, nothing = await asyncio.gather(
        errand.run("tasks"),
        errand.run("search", "harbour ingrid"),
        errand.run("search", "--json", "ingrid"),
        errand.run("search", 'no" OR such*'),
    )
    assert "completed" in tasks.out
    assert "who is it?" in tasks.out
    assert "Ingrid" in results.out
    assert not {"\u2068", "\u2069"} & set(results.out)
    assert [hit["role"] for hit in as_json.lines] == ["assistant"]
    assert (nothing.code, nothing.out) == (0, "")
    assert "No results for" in nothing.err


async def test_a_key_for_one_run_reaches_the_model_and_nothing_else(errand: Errand) -> None:
    key = "sk-test-0123456789abcdef"
    arguments = ("run", "--json", "--api-key-env", "MY_OWN", *MODEL)
    async with ModelServer(replies=[Reply(text="Good day.")]) as server:
        done = await errand.run(*arguments, server.url, "greet me", variables={"MY_OWN": key})
        sent = server.requests[0].headers["Authorization"]
    holding = [file for file in errand.home.rglob("*") if file.is_file() and key.encode() in file.read_bytes()]
    assert done.code == 0, done.err
    assert sent == f"Bearer {key}"
    assert key not in done.out + done.err
    assert holding == []


async def test_the_doctor_works_before_the_first_start_and_beside_a_running_engine(own_errand: Errand) -> None:
    before = await own_errand.run("doctor")
    await own_errand.run("tasks")
    checked = await own_errand.run("doctor", variables={"OPENAI_API_KEY": "sk-secret-0123456789"})
    stopped = [await own_errand.run("engine", "--stop") for _ in range(2)]
    assert (before.code, checked.code) == (0, 0)
    assert [(run.code, run.out) for run in stopped] == [(0, "The engine has ended.\n"), (0, "No engine is running.\n")]
    assert "none yet; created at the first start" in before.out
    assert "not running; it starts and responds" in before.out
    assert "running, pid" in checked.out
    assert "sk-secret" not in checked.out


async def test_the_doctor_says_what_is_wrong_with_an_unreadable_database(own_errand: Errand) -> None:
    own_errand.home.mkdir()
    (own_errand.home / "errand.db").write_bytes(b"this is no database" * 400)
    done = await own_errand.run("doctor")
    tasks = await own_errand.run("tasks")
    out = " ".join(done.out.split())
    assert done.code == 1
    assert "cannot be read" in out
    assert "Nothing was changed." in out
    assert (tasks.code, "No tasks yet" in tasks.out + tasks.err) == (1, False)
    (own_errand.home / "errand.db").write_bytes(b"")
    assert "errand.db is empty" in " ".join((await own_errand.run("doctor")).out.split())


async def test_help_is_there_without_an_engine(own_errand: Errand) -> None:
    asked = (("--help",), ("run", "--help"), ("engine", "--help"), ("--version",))
    done = await asyncio.gather(*(own_errand.run(*arguments) for arguments in asked))
    assert [(run.code, run.err, bool(run.out)) for run in done] == [(0, "", True)] * 4
    assert not own_errand.home.exists()
