"""Names of other agents' tools: the call is made, stored and shown under the tool's own name."""

from pathlib import Path

from errand.protocol.blocks import ToolCallBlock
from errand.protocol.tasks import TaskStartParams
from tests.support.engine_parts import engine_parts
from tests.support.model_replies import DONE, results
from tests.support.model_server import Call, ModelServer, Reply


async def test_execute_command_runs_as_shell_and_is_stored_and_sent_back_as_shell(tmp_path: Path) -> None:
    server = ModelServer(turns=[Reply(calls=(Call("execute_command", {"command": "echo hello"}),)), DONE])
    async with engine_parts(tmp_path, server) as engine:
        await engine.watcher.end((await engine.start()).id)
        nodes = engine.watcher.nodes()
        called = [block.tool for node in nodes for block in node.blocks if isinstance(block, ToolCallBlock)]
        assert called == ["shell", "task_complete"]
        assert results(nodes)[0].tool == "shell" and "hello" in results(nodes)[0].text
        assert "execute_command" not in str(server.requests[1].messages[1:])


async def test_names_of_file_tools_stand_for_actions_of_code(tmp_path: Path) -> None:
    writes = Call("write_file", {"file_path": "a.txt", "content": "one\n"})
    turns = [Reply(calls=(writes, Call("read_file", {"path": "a.txt"}), Call("list_dir", {}))), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        await engine.watcher.end((await engine.start()).id)
        texts = [result.text for result in results(engine.watcher.nodes())]
        assert texts[1].startswith("one") and "a.txt" in texts[2]


async def test_alias_works_where_calls_are_text(tmp_path: Path) -> None:
    text = "<tool_code><name>execute_command</name><parameters><command>echo as text</command></parameters></tool_code>"
    server = ModelServer(turns=[Reply(text=text), Reply(text="<final_answer>done</final_answer>")])
    async with engine_parts(tmp_path, server) as engine:
        params = TaskStartParams(
            prompt="go",
            model="react/openai_compatible/test-model",
            api_base=server.url,
            api_key="sk-test-key-of-the-tests",
            workspace=str(engine.workspace),
            approve="all",
            attended=False,
        )
        await engine.watcher.end((await engine.services.runner.start(params)).id)
        first = results(engine.watcher.nodes())[0]
        assert first.tool == "shell" and "as text" in first.text
