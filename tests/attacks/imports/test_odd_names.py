"""File names that are not text, circular links, deep and wide trees: at every place that meets them."""

import contextlib
import os
import subprocess
from pathlib import Path

import pytest

from errand.engine.data.conversation_files import size_of
from errand.engine.data.importer import Importer
from tests.attacks.campaign import Campaign
from tests.support.command_line import Errand
from tests.support.engine_parts import engine_parts
from tests.support.model_replies import DONE
from tests.support.model_server import Call, ModelServer, Reply

FILES = Path(__file__).parents[2] / "engine" / "data" / "importers" / "files"
# Letters, halves of surrogate pairs, controls, all line ends, and what looks like options or patterns.
LETTERS = b"aZ \n\r\t\x1b\x7f\xc2\x85\xe2\x80\xa8\xff\xed\xa0\x80*?[]{}!$`'\"\\-#%&;|<>()~=:"
NO_TEXT = os.fsdecode(b"caf\xe9")


def code(**arguments: str) -> Reply:
    return Reply(calls=(Call("code", dict(arguments)),))


async def told(home: Path, *replies: Reply) -> list[str]:
    """Run a task to its end with these replies; return what the model reads after each of them."""
    async with engine_parts(home, ModelServer(replies=[*replies, DONE])) as engine:
        task = await engine.watcher.end((await engine.start()).id)
        assert (task.activity.status, task.outcome.error) == ("completed", None)
        return [str(request.messages[-1]["content"]) for request in engine.model.requests[1:]]


def workspace_in(home: Path) -> Path:
    folder = home / "workspace"
    folder.mkdir()
    return folder


async def test_names_that_are_no_text_end_no_task(tmp_path: Path) -> None:
    folder = workspace_in(tmp_path)
    for name in (NO_TEXT, "two\nlines", "\x1b[31mred", "-rf", "--help", "日" * 85):
        (folder / name).write_text("needle")
    (folder / f"{NO_TEXT} too").mkdir()
    (folder / f"{NO_TEXT} too" / "inner").touch()
    (folder / "way there").symlink_to(f"{NO_TEXT} too")
    (folder / ".agents" / "skills" / NO_TEXT).mkdir(parents=True)
    (folder / ".agents" / "skills" / NO_TEXT / "SKILL.md").write_text("---\nname: x\ndescription: y\n---\n")
    listed, matches, below, alike, through, written = await told(
        tmp_path,
        code(action="list"),
        code(action="search", pattern="needle"),
        code(action="list", glob="**"),
        code(action="read", path="cafe"),
        code(action="list", path="way there"),
        code(action="write", path="way there/new", content="new"),
    )
    names = {'"caf\\351"', '"two\\nlines"', '"\\033[31mred"', "-rf", "--help", "日" * 85}
    assert names | {'"caf\\351 too/"', "way there/"} <= set(listed.splitlines())
    assert {line.partition(":")[0] for line in matches.splitlines()} == names
    assert names <= set(below.splitlines())
    assert 'There is no file cafe. There is "caf\\351".' in alike
    assert '"caf\\351 too/inner"' in through
    assert "leads to a name that is not UTF-8" in written


async def test_whatever_bytes_names_are_made_of_they_are_listed_and_searched(
    tmp_path: Path, campaign: Campaign
) -> None:
    folder, chance = workspace_in(tmp_path), campaign.random("names")
    for _ in range(campaign.rounds(20, 5_000)):
        name = bytes(chance.choices(LETTERS, k=chance.choice((1, 2, 5, 255)))).replace(b"/", b"-")
        path = os.path.join(os.fsencode(folder), b"d" + name[1:])
        with contextlib.suppress(FileExistsError):
            if chance.random() < 0.5:
                os.mkdir(path)
            else:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    listed, matches, below = await told(
        tmp_path, code(action="list"), code(action="search", pattern="^"), code(action="list", glob="d*")
    )
    for answer in (listed, matches, below):
        assert all(line.startswith(("d", '"d', "[", "(")) for line in answer.splitlines()), answer


async def test_links_that_lead_in_circles_are_listed_as_what_they_are(tmp_path: Path) -> None:
    folder = workspace_in(tmp_path)
    (folder / "itself").symlink_to("itself")
    (folder / "there").symlink_to("back")
    (folder / "back").symlink_to("there")
    (folder / "nowhere").symlink_to("gone")
    (folder / "up").symlink_to("..")
    (folder / "AGENTS.md").symlink_to("AGENTS.md")
    listed, below, matches, read = await told(
        tmp_path,
        code(action="list"),
        code(action="list", glob="**"),
        code(action="search", pattern="x"),
        code(action="read", path="itself"),
    )
    assert listed.splitlines() == ["AGENTS.md", "back", "itself", "nowhere", "there", "up/"]
    assert below.splitlines() == listed.splitlines()
    assert matches == "(no hits)"
    assert "'itself' is a link that leads to itself" in read


async def test_a_tree_deeper_than_python_calls_functions_is_walked(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    inner = workspace_in(tmp_path)
    # Python's own function is limited by the path length.
    request.addfinalizer(lambda: subprocess.run(("rm", "-rf", inner), check=True))
    descriptor = os.open(inner, os.O_RDONLY)
    for _ in range(1_100):  # longer than a path may be: each folder is created relative to the previous one
        os.mkdir("d", dir_fd=descriptor)
        below = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)
    (inner / "d" / "d" / "file").write_text("needle")
    matches, listed = await told(tmp_path, code(action="search", pattern="needle"), code(action="list", glob="**/file"))
    assert (matches, listed) == ("d/d/file:1: needle", "d/d/file")
    assert size_of(inner) == (6, 1)


async def test_a_folder_of_very_many_files_is_listed_in_part(tmp_path: Path, campaign: Campaign) -> None:
    folder = workspace_in(tmp_path)
    for number in range(campaign.rounds(1_000, 100_000)):
        os.close(os.open(folder / f"{number:06}", os.O_CREAT | os.O_WRONLY))
    (listed,) = await told(tmp_path, code(action="list"))
    assert listed.splitlines()[-1] == "[there are more; narrow the path or the glob]"


async def test_a_workspace_whose_name_is_no_text_is_refused_in_words(errand: Errand, workspace: Path) -> None:
    (workspace / NO_TEXT).mkdir()
    (workspace / "way there").symlink_to(NO_TEXT)
    inside = Errand(errand.home, workspace / NO_TEXT)
    for command, arguments in (
        (inside, ("run", "--model", "scripted/tour", "go")),
        (inside, ("import", "all.jsonl")),
        (errand, ("run", "--model", "scripted/tour", "--workspace", "way there", "go")),
    ):
        refused = await command.run(*arguments)
        assert refused.code == 2 and "is not UTF-8" in refused.err, (arguments, refused)


async def test_a_data_directory_whose_name_is_no_text_is_refused_in_words(tmp_path: Path) -> None:
    refused = await Errand(tmp_path / NO_TEXT, tmp_path).run("tasks")
    assert refused.code == 1 and "its name is not UTF-8" in refused.err


async def test_conversations_in_files_whose_names_are_no_text_are_taken_in(tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    without_an_id = (FILES / "goose.json").read_bytes().replace(b'"id":', b'"other":', 1)
    (folder / f"{NO_TEXT}.json").write_bytes(without_an_id)
    async with engine_parts(tmp_path, ModelServer()) as engine:
        services = engine.services
        taken = await Importer(
            services.log, services.database, services.runner.changes, services.locks, services.paths
        ).run(folder)
        assert (taken.conversations, taken.source) == (1, "goose")
