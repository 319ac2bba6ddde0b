"""What small models are told when they change files."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec
import pytest

from errand.protocol.blocks import ToolResultBlock
from errand.protocol.tasks.groups import ApproveMode
from errand.protocol.tasks.methods import TaskStartParams
from tests.support.engine_parts import crash, engine_parts
from tests.support.local_servers import llama_cpp
from tests.support.model_replies import results
from tests.support.model_server import ModelServer, Reply

ANSWER = Reply(text='{"name": "answer", "arguments": {"text": "Done."}}')


def written(path: str, content: str) -> Reply:
    return Reply(text=f'{{"name": "write", "arguments": {{"path": "{path}", "content": "{content}"}}}}')


async def results_of(
    tmp_path: Path,
    *replies: Reply,
    files: Mapping[str, str] = MappingProxyType({}),
    prepare: Callable[[Path], None] = lambda folder: None,
    approve: ApproveMode = "all",
) -> tuple[list[ToolResultBlock], Path]:
    """Return the results of the calls of a small model that llama.cpp serves, in a folder with these files.

    `prepare` is called with the folder.
    """
    server = ModelServer([*replies, ANSWER], pages=llama_cpp("small.gguf", window=8192))
    async with engine_parts(tmp_path, server) as engine:
        for name, text in files.items():
            (engine.workspace / name).write_text(text)
        prepare(engine.workspace)
        engine.services.keys.add_environment({"LLAMA_CPP_API_BASE": server.url})
        params = TaskStartParams(prompt="Do it.", workspace=str(engine.workspace), approve=approve)
        await engine.watcher.end((await engine.services.runner.start(params)).id)
        return results(engine.watcher.nodes()), engine.workspace


def called(name: str, **arguments: str) -> Reply:
    return Reply(text=msgspec.json.encode({"name": name, "arguments": arguments}).decode())


@pytest.mark.parametrize("look", [called("read", path="a.txt"), called("bash", command="cat './a.txt'; true")])
async def test_a_write_over_text_is_refused_until_it_was_read(tmp_path: Path, look: Reply) -> None:
    again = written("a.txt", "new")
    (refused, _, done, _), folder = await results_of(tmp_path, again, look, again, files={"a.txt": "old\n"})
    assert refused.is_error and "Nothing was written" in refused.text
    assert not done.is_error
    assert (folder / "a.txt").read_text() == "new"


async def test_a_write_over_text_that_was_not_read_is_refused_again(tmp_path: Path) -> None:
    again = written("a.txt", "new")
    replies = (again, called("bash", command="ls"), again)
    (_, _, refused, _), folder = await results_of(tmp_path, *replies, files={"a.txt": "old\n"})
    assert refused.is_error and (folder / "a.txt").read_text() == "old\n"


@pytest.mark.parametrize(
    ("content", "path"),
    [
        (b"x" * 200_000, "a.txt"),
        ("Grüße\n".encode("latin-1"), "a.txt"),
        (b"old\n", '"a.txt"'),
        (b"old\n", "b/../a.txt"),
        (b"old\n", "~/a.txt"),
        (b"old\n", "link"),
    ],
    ids=["long", "latin-1", "quoted", "through a folder", "of the home directory", "a link"],
)
async def test_a_write_over_any_unread_file_is_refused_however_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, path: str
) -> None:
    def prepare(folder: Path) -> None:
        monkeypatch.setenv("HOME", str(folder))
        (folder / "a.txt").write_bytes(content)
        (folder / "b").mkdir()
        (folder / "link").symlink_to("a.txt")

    (refused, _), folder = await results_of(tmp_path, called("write", path=path, content="new"), prepare=prepare)
    assert refused.is_error and "Nothing was written" in refused.text
    assert (folder / "a.txt").read_bytes() == content


@pytest.mark.parametrize("command", ["cat 'my notes.txt'", 'cat "my notes.txt"', "cat my\\ notes.txt", "cat link"])
async def test_a_command_that_names_a_file_in_any_way_lets_it_be_written(tmp_path: Path, command: str) -> None:
    def prepare(folder: Path) -> None:
        (folder / "my notes.txt").write_text("old\n")
        (folder / "link").symlink_to("my notes.txt")

    write = written("my notes.txt", "new")
    (_, done, _), folder = await results_of(tmp_path, called("bash", command=command), write, prepare=prepare)
    assert not done.is_error and (folder / "my notes.txt").read_text() == "new"


async def test_a_command_names_the_files_of_the_folder_in_which_it_runs(tmp_path: Path) -> None:
    def prepare(folder: Path) -> None:
        (folder / "sub").mkdir()
        for name in ("a.txt", "sub/a.txt"):
            (folder / name).write_text("old\n")

    replies = (called("bash", command="cd sub"), called("bash", command="cat a.txt"))
    writes = (written("a.txt", "new"), written("sub/a.txt", "new"))
    (_, _, refused, done, _), folder = await results_of(tmp_path, *replies, *writes, prepare=prepare)
    assert (refused.is_error, done.is_error) == (True, False)
    assert (folder / "a.txt").read_text() == "old\n"


@pytest.mark.parametrize(
    ("command", "known"),
    [
        ("cd sub && cat a.txt", ["sub/a.txt"]),
        ("cat a.txt; cd sub; ls", ["a.txt"]),
        ("cd sub; cat ../a.txt", ["a.txt"]),
        ("bash -c 'cd sub; cat a.txt'", ["sub/a.txt"]),
        ("cd sub && wc -l < a.txt", ["sub/a.txt"]),
        ("cat *.txt", ["a.txt"]),
        ('cd "$(echo sub)" && cat a.txt', []),
    ],
)
async def test_a_command_that_changes_the_folder_names_files_where_it_runs(
    tmp_path: Path, command: str, known: list[str]
) -> None:
    names = ("a.txt", "sub/a.txt")

    def prepare(folder: Path) -> None:
        (folder / "sub").mkdir()
        for name in names:
            (folder / name).write_text("old\n")

    writes = [written(name, "new") for name in names]
    _, folder = await results_of(tmp_path, called("bash", command=command), *writes, prepare=prepare)
    assert [name for name in names if (folder / name).read_text() == "new"] == known


async def test_what_was_read_before_a_crash_or_for_an_earlier_message_is_known(tmp_path: Path) -> None:
    later = tmp_path / "later"
    later.mkdir()
    gate = asyncio.Event()
    first, again = written("a.txt", "new"), written("a.txt", "newer")
    pages = llama_cpp("small.gguf", window=8192)
    server = ModelServer([called("read", path="a.txt"), Reply(text="", gate=gate)], pages=pages)
    async with engine_parts(tmp_path, server) as engine:
        (engine.workspace / "a.txt").write_text("old\n")
        engine.services.keys.add_environment({"LLAMA_CPP_API_BASE": server.url})
        params = TaskStartParams(prompt="Do it.", workspace=str(engine.workspace), approve="all")
        started = await engine.services.runner.start(params)
        await server.request(1)
        port = crash(engine, later)
        gate.set()
        await engine.watcher.end(started.id)
    async with engine_parts(later, ModelServer([first, ANSWER, again, ANSWER], pages=pages, port=port)) as engine:
        engine.services.keys.add_environment({"LLAMA_CPP_API_BASE": engine.model.url})
        await engine.services.runner.resume(started.id)
        await engine.watcher.end(started.id)
        assert (tmp_path / "workspace" / "a.txt").read_text() == "new"
        params = TaskStartParams(
            prompt="Again.",
            workspace=started.request.workspace,
            approve="all",
            conversation_id=started.conversation_id,
            agent_id=started.agent_id,
        )
        await engine.watcher.end((await engine.services.runner.start(params)).id)
        assert (tmp_path / "workspace" / "a.txt").read_text() == "newer"


async def test_a_file_that_was_read_through_a_link_is_written(tmp_path: Path) -> None:
    def prepare(folder: Path) -> None:
        (folder / "a.txt").write_text("old\n")
        (folder / "link").symlink_to("a.txt")

    replies = (called("read", path="link"), written("a.txt", "new"))
    (_, done, _), _ = await results_of(tmp_path, *replies, prepare=prepare)
    assert not done.is_error


async def test_a_new_file_is_written_at_once(tmp_path: Path) -> None:
    (done, _), _ = await results_of(tmp_path, written("b.txt", "new"), files={"a.txt": "old\n"})
    assert not done.is_error


def edited(old: str, new: str) -> Reply:
    call = {"name": "edit", "arguments": {"path": "a.py", "old_string": old, "new_string": new}}
    return Reply(text=msgspec.json.encode(call).decode())


async def test_a_change_is_shown_and_a_mistake_that_was_there_is_named_with_its_line(tmp_path: Path) -> None:
    (changed, _), _ = await results_of(tmp_path, edited("x = 1", "x = 2"), files={"a.py": "x = 1\ny = (\n"})
    assert "-x = 1\n+x = 2" in changed.text
    assert "a.py does not parse: line 2" in changed.text


async def test_a_change_after_which_a_file_no_longer_parses_is_refused(tmp_path: Path) -> None:
    one_line = edited("def f():", "def f(): return 2")
    whole_function = edited("def f():\n    return 1", "def f():\n    return 2")
    (refused, changed, _), folder = await results_of(
        tmp_path, one_line, whole_function, files={"a.py": "def f():\n    return 1\n"}
    )
    assert refused.is_error
    assert refused.text.startswith(
        "Nothing was changed. With this change a.py does not parse: line 2: unexpected indent: return 1\n"
    )
    assert not changed.is_error
    assert (folder / "a.py").read_text() == "def f():\n    return 2\n"


async def test_a_write_over_unread_text_is_refused_for_that_first(tmp_path: Path) -> None:
    broken, whole_file = written("a.py", "x = ("), written("a.py", "x = 2")
    replies = (broken, called("read", path="a.py"), broken, whole_file)
    (unread, _, mistaken, changed, _), folder = await results_of(tmp_path, *replies, files={"a.py": "x = 1\n"})
    assert "that you have not read" in unread.text
    assert "does not parse" in mistaken.text
    assert not changed.is_error
    assert (folder / "a.py").read_text() == "x = 2"


async def test_nothing_of_a_file_outside_is_told_before_its_change_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "secret.py").write_text("def key():\n    return 'plum'\n")
    outside = {"path": str(tmp_path / "secret.py"), "old_string": "def key():", "new_string": "def key(): return 1"}
    edit = Reply(text=msgspec.json.encode({"name": "edit", "arguments": outside}).decode())
    (refused, *_), _ = await results_of(tmp_path, edit, files={}, approve="never")
    assert refused.is_error
    assert "plum" not in refused.text
