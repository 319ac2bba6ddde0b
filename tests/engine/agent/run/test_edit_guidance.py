"""What small models are told when they change files."""

from pathlib import Path

from errand.protocol.blocks import ToolResultBlock
from errand.protocol.tasks.methods import TaskStartParams
from tests.support.engine_parts import engine_parts
from tests.support.local_servers import llama_cpp
from tests.support.model_replies import results
from tests.support.model_server import ModelServer, Reply

ANSWER = Reply(text='{"name": "answer", "arguments": {"text": "Done."}}')


def written(path: str, content: str) -> Reply:
    return Reply(text=f'{{"name": "write", "arguments": {{"path": "{path}", "content": "{content}"}}}}')


async def results_of(tmp_path: Path, *replies: Reply, files: dict[str, str]) -> tuple[list[ToolResultBlock], Path]:
    """Return the results of the calls of a small model that llama.cpp serves."""
    server = ModelServer([*replies, ANSWER], pages=llama_cpp("small.gguf", window=8192))
    async with engine_parts(tmp_path, server) as engine:
        for name, text in files.items():
            (engine.workspace / name).write_text(text)
        engine.services.keys.add_environment({"LLAMA_CPP_API_BASE": server.url})
        params = TaskStartParams(prompt="Do it.", workspace=str(engine.workspace), approve="all")
        await engine.watcher.end((await engine.services.runner.start(params)).id)
        return results(engine.watcher.nodes()), engine.workspace


async def test_a_write_over_text_that_was_not_read_is_refused_once(tmp_path: Path) -> None:
    again = written("a.txt", "new")
    (refused, done, _), folder = await results_of(tmp_path, again, again, files={"a.txt": "old\n"})
    assert refused.is_error and "Nothing was written" in refused.text
    assert not done.is_error
    assert (folder / "a.txt").read_text() == "new"


async def test_a_new_file_is_written_at_once(tmp_path: Path) -> None:
    (done, _), _ = await results_of(tmp_path, written("b.txt", "new"), files={"a.txt": "old\n"})
    assert not done.is_error


async def test_a_change_is_shown_and_a_mistake_is_named_with_its_line(tmp_path: Path) -> None:
    edit = Reply(text='{"name": "edit", "arguments": {"path": "a.py", "old_string": "x = 1", "new_string": "x = (1"}}')
    (changed, _), _ = await results_of(tmp_path, edit, files={"a.py": "x = 1\n"})
    assert "-x = 1\n+x = (1" in changed.text
    assert "a.py does not parse: line 1" in changed.text


async def test_a_file_that_was_read_as_a_whole_has_the_number_of_its_lines_below_it(tmp_path: Path) -> None:
    read = Reply(text='{"name": "read", "arguments": {"path": "a.txt"}}')
    (result, _), _ = await results_of(tmp_path, read, files={"a.txt": "one\ntwo\n"})
    assert result.text == "one\ntwo\n[2 lines]"
