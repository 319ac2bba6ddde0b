"""Calls that are a little off: those that are beyond doubt run under the tool's own name, others are refused."""

import json
from pathlib import Path

import pytest

from errand.engine.models.reply.builder import ReplyBuilder
from errand.protocol.asks import AskAnswerParams
from errand.protocol.base import JsonObject, JsonValue
from errand.protocol.blocks import ToolCallBlock
from errand.protocol.tasks.methods import TaskStartParams
from tests.support.engine_parts import engine_parts
from tests.support.mcp_servers import stored
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


RIGHT = json.dumps({"command": "echo ran-it"})


async def _results_of(tmp_path: Path, *calls: Call, piece_length: int = 8) -> list[str]:
    server = ModelServer(turns=[Reply(calls=calls, piece_length=piece_length), DONE])
    async with engine_parts(tmp_path, server) as engine:
        await engine.watcher.end((await engine.start()).id)
        return [result.text for result in results(engine.watcher.nodes())]


@pytest.mark.parametrize(
    "raw",
    [
        RIGHT + RIGHT,
        RIGHT + "\n" + RIGHT,
        "{}" + RIGHT,
        RIGHT + "{}",
        RIGHT[:9] + RIGHT,
        RIGHT + "<|im_end|>",
        RIGHT + "</s>",
        RIGHT + "}",
        json.dumps(RIGHT),
        json.dumps(json.dumps(RIGHT)),
        f"[{RIGHT}]",
        f'{{"arguments": {RIGHT}}}',
        f'{{"name": "Bash", "parameters": {json.dumps(RIGHT)}}}',
        f"```json\n{RIGHT}\n```",
        f"```\n{RIGHT}```",
        "\ufeff" + RIGHT,
        '{"command": "echo a\necho ran-it"}',
        '{"command": "echo a\r\n\techo ran-it"}',
    ],
)
async def test_arguments_with_known_damage_run(tmp_path: Path, raw: str) -> None:
    texts = await _results_of(tmp_path, Call("shell", raw))
    assert "ran-it" in texts[0].splitlines()


@pytest.mark.parametrize(
    "raw",
    [
        '{"command": "touch one"}{"command": "touch two"}',
        '{"command": "touch one", "command": "touch two"}',
        '{"command": "touch one"}{"command": "touch one", "working_dir": "."}',
        '[{"command": "touch one"}, {"command": "touch two"}]',
        '{"command": "touch one',
        '{"command": "touch one"} and then {"command": "touch two"}',
        'Run this: {"command": "touch one"}',
        json.dumps('{"command": "touch one"}{"command": "touch two"}'),
        json.dumps("touch one"),
        '{"name": "code", "arguments": {"command": "touch one"}}',
        '{"command": "touch one", "timeout_secs": 1e999}',
    ],
)
async def test_ambiguous_arguments_do_not_run(tmp_path: Path, raw: str) -> None:
    server = ModelServer(turns=[Reply(calls=(Call("shell", raw),)), DONE])
    async with engine_parts(tmp_path, server) as engine:
        await engine.watcher.end((await engine.start()).id)
        assert not [path for name in ("one", "two") if (path := engine.workspace / name).exists()]
        first = results(engine.watcher.nodes())[0]
        assert first.is_error and ("not a valid JSON object" in first.text or "`arguments` are not" in first.text)


@pytest.mark.parametrize(
    "name",
    [
        *("shell<|channel|>commentary", "<|tool|>shell", "shell</s>", "to=functions.shell <|constrain|>json"),
        *("functions.shell", "functions.shell:0", "default_api:shell", "tools/shell", "api::shell", "shell()"),
        *(" shell\n", "`shell`", "Shell", "SHELL", "Bash", "bash", "shell_command", "RunCommand", "container.exec"),
    ],
)
async def test_dressed_name_runs_the_tool_that_is_meant(tmp_path: Path, name: str) -> None:
    texts = await _results_of(tmp_path, Call(name, {"command": "echo ran-it"}))
    assert texts[0].strip() == "ran-it"


@pytest.mark.parametrize(
    "name", ["launch_rocket", "functions.launch_rocket", "code.shell", "shell.read", "<|", "shell2"]
)
async def test_name_that_means_no_tool_is_answered_with_the_tools(tmp_path: Path, name: str) -> None:
    texts = await _results_of(tmp_path, Call(name, {"command": "echo ran-it", "path": "."}))
    assert "The tools are: read, write, edit, " in texts[0] and "ran-it" not in texts[0]


@pytest.mark.parametrize(
    ("call", "example"),
    [
        (Call("read", {}), '[A call of read looks like this: {"path":"notes.txt"}]'),
        (Call("write", {"path": "a.txt"}), '[A call of write looks like this: {"path":"a.txt","content":"…"}]'),
        (
            Call("edit", {"path": "a.txt", "old_string": "x"}),
            '[A call of edit looks like this: {"path":"a.txt","old_string":"x","new_string":"…"}]',
        ),
        (Call("bash", {"cmdline": "ls"}), '[A call of bash looks like this: {"command":"ls"}]'),
        (Call("bash", "no JSON"), '[A call of bash looks like this: {"command":"ls"}]'),
        (Call("todo_write", {"todos": "look"}), '[A call of todo_write looks like this: {"todos":'),
        (Call("read", {"path": "a.txt", "start_line": "one"}), '[A call of read looks like this: {"path":"a.txt"}]'),
    ],
)
async def test_wrong_arguments_are_answered_with_a_call_as_it_was_offered(
    tmp_path: Path, call: Call, example: str
) -> None:
    texts = await _results_of(tmp_path, call)
    assert example in texts[0].splitlines()[-1]


async def test_failed_call_with_right_arguments_has_no_example(tmp_path: Path) -> None:
    texts = await _results_of(tmp_path, Call("read", {"path": "gone.txt"}), Call("bash", {"command": "false"}))
    assert not any("looks like this" in text for text in texts)


async def test_names_of_file_actions_run_with_the_arguments_of_other_agents(tmp_path: Path) -> None:
    texts = await _results_of(
        tmp_path,
        Call("Write", {"file_path": "a.txt", "contents": "one\ntwo\n"}),
        Call("Edit", {"file_path": "a.txt", "old_string": "two", "new_string": "three"}),
        Call("read", {"file": "a.txt"}),
        Call("grep", {"regex": "thr", "folder": ".", "include": "*.txt"}),
        Call("ls", {"directory": "."}),
    )
    assert "three" in texts[2] and "a.txt" in texts[3] and "three" in texts[3] and "a.txt" in texts[4]


async def test_near_names_of_arguments_are_taken(tmp_path: Path) -> None:
    items: list[JsonValue] = [{"step": "look", "state": "completed"}, {"title": "write", "status": "in-progress"}]
    texts = await _results_of(
        tmp_path,
        Call("shell", {"cmd": ["bash", "-lc", "pwd; echo ran-it"], "workdir": "."}),
        Call("shell", {"command": ["echo", "a b"]}),
        Call("todo", {"plan": items}),
    )
    assert texts[0].splitlines()[-1] == "ran-it" and texts[1].strip() == "a b" and "1 of 2 done" in texts[2]


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (Call("shell", {"command": "echo ran-it", "timeout": 5, "dry_run": True}), "`timeout`, `dry_run` are not"),
        (Call("code", {"action": "list", "depth": 2}), "`depth` is not"),
        (Call("shell", {"comand": "echo a"}), "`comand` is not"),
        (Call("todo", {"items": [{"text": "look", "priority": 1}]}), "`items.priority` is not"),
        (Call("send_update", {"message": "hello", "to": "all"}), "`to` is not"),
    ],
)
async def test_unknown_arguments_are_named_in_the_result(tmp_path: Path, call: Call, named: str) -> None:
    texts = await _results_of(tmp_path, call)
    assert named in texts[0] and "Its arguments are: " in texts[0]


async def test_argument_that_is_known_is_not_named(tmp_path: Path) -> None:
    texts = await _results_of(tmp_path, Call("shell", {"command": "echo ran-it", "timeout_secs": "5", "pty": "false"}))
    assert texts[0].strip() == "ran-it"


@pytest.mark.parametrize(
    "arguments",
    [
        {"items": '[{"text": "look", "status": "done"}]'},
        {"items": ['{"text": "look", "status": "done"}']},
        {"plan": '[{"step": "look", "state": "complete"}]'},
        {"items": '```json\n[{"text": "look", "status": "done"}]\n```'},
    ],
)
async def test_lists_and_objects_as_text_are_taken(tmp_path: Path, arguments: JsonObject) -> None:
    texts = await _results_of(tmp_path, Call("todo", arguments))
    assert "1 of 1 done" in texts[0]


@pytest.mark.parametrize("name", ["test.echo", "mcp__test__echo", "Test__Echo", "functions.test__echo", "echo"])
async def test_dressed_name_of_a_server_s_tool_is_asked_about_as_that_tool(tmp_path: Path, name: str) -> None:
    call = Call(name, {"text": "ran-it", "more": 1})
    async with engine_parts(tmp_path, ModelServer(turns=[Reply(calls=(call,)), DONE])) as engine:
        engine.services.settings.set_mcp_servers((stored(),))
        task = await engine.start(approve="ask")
        ask = await engine.watcher.ask(task.id)
        assert ask.approval is not None and ask.approval.service == "test/echo"
        await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, allow=True), "me")
        await engine.watcher.end(task.id)
        first = results(engine.watcher.nodes())[0]
        assert (first.tool, first.text) == ("test__echo", "ran-it")


async def test_name_with_two_meanings_runs_none_of_them(tmp_path: Path) -> None:
    calls = (Call("echo", {"text": "ran-it"}), Call("test__gone", {"text": "ran-it"}))
    async with engine_parts(tmp_path, ModelServer(turns=[Reply(calls=calls), DONE])) as engine:
        engine.services.settings.set_mcp_servers((stored(), stored(name="other")))
        await engine.watcher.end((await engine.start()).id)
        first, second, *_ = results(engine.watcher.nodes())
        assert "It may mean other__echo or test__echo" in first.text and "ran-it" not in first.text
        assert "The tools are: read, " in second.text


@pytest.mark.parametrize(
    "pieces",
    [
        [(0, "a", "shell", RIGHT), (0, "a", "shell", RIGHT)],
        [(0, "", "shell", RIGHT), (0, "", "shell", RIGHT)],
        [(0, "", "shell", RIGHT[:9]), (0, "", "", RIGHT[9:]), (0, "", "shell", RIGHT)],
        [(0, "a", "shell", "{}"), (0, "a", "shell", RIGHT)],
        [(None, "a", "shell", RIGHT[:5]), (None, "a", "", RIGHT[:12]), (None, "a", "", RIGHT)],
    ],
)
def test_call_that_a_server_repeats_in_its_last_piece_is_one_call(
    pieces: list[tuple[int | None, str, str, str]],
) -> None:
    builder = ReplyBuilder("m/x")
    for index, call_id, name, arguments in pieces:
        builder.tool_call(index, call_id, name, arguments)
    builder.end("tool_use")
    assert [call.arguments for call in builder.message.tool_calls] == [json.loads(RIGHT)]


def test_equal_calls_of_a_server_that_counts_them_are_two_calls() -> None:
    builder = ReplyBuilder("m/x")
    builder.tool_call(0, "", "shell", RIGHT)
    builder.tool_call(1, "", "shell", RIGHT)
    builder.tool_call(None, "b", "shell", RIGHT)
    assert len(builder.message.tool_calls) == 3
