"""A task waits for a server that loads its model, and takes the model that the server has then."""

import asyncio
from pathlib import Path

import msgspec

from errand.engine.agent.prompt.texts import prompt_text
from errand.protocol.blocks import NoticeBlock
from errand.protocol.events import PromptReading
from errand.protocol.tasks.methods import TaskStartParams
from errand.text.notice_text import notice_text
from tests.support.engine_parts import EngineParts, crash, engine_parts
from tests.support.local_servers import llama_cpp, loading_llama_cpp, ollama, vllm
from tests.support.model_replies import results
from tests.support.model_server import Call, ModelServer, Page, ReceivedRequest, Reply
from tests.support.recorded_tasks import record_of

_CHANGED = Reply(text='{"name": "edit", "arguments": {"path": "a.txt", "old_string": "old", "new_string": "new"}}')
_ANSWERED = Reply(text='{"name": "answer", "arguments": {"text": "Done."}}')


async def test_a_task_waits_while_a_server_loads_its_model_and_names_it_then(tmp_path: Path) -> None:
    server = ModelServer([Reply(text="hello")], pages=loading_llama_cpp())
    async with engine_parts(tmp_path, server) as engine:
        engine.services.keys.add_environment({"LLAMA_CPP_API_BASE": server.url})
        task = await engine.services.runner.start(TaskStartParams(prompt="hi", workspace=str(engine.workspace)))
        waiting = await engine.watcher.task(task.id, lambda task: task.activity.awaits_server)
        assert waiting.activity.detail == f"llama.cpp at :{_port(server)} is loading its model"
        server.pages.update(llama_cpp("m.gguf"))
        ended = await engine.watcher.end(task.id)
        nodes = engine.watcher.nodes()
    assert (ended.activity.status, ended.activity.awaits_server) == ("completed", False)
    assert [request.body["model"] for request in server.requests] == ["m.gguf"]
    assert [node.model for node in nodes if node.role == "assistant"] == ["llama_cpp/m.gguf"]
    assert not [block for node in nodes for block in node.blocks if isinstance(block, NoticeBlock)]


async def test_the_tools_of_a_small_model_are_chosen_once_it_is_loaded(tmp_path: Path) -> None:
    server = ModelServer([_CHANGED, _ANSWERED], pages=loading_llama_cpp())
    async with engine_parts(tmp_path, server) as engine:
        (engine.workspace / "a.txt").write_text("old\n")
        engine.services.keys.add_environment({"LLAMA_CPP_API_BASE": server.url})
        task = await engine.services.runner.start(_changing(engine))
        await engine.watcher.task(task.id, lambda task: task.activity.awaits_server)
        server.pages.update(llama_cpp("small.gguf", window=32_768))
        await engine.watcher.end(task.id)
        stored = await engine.services.database.prompts.of_task(task.id)
        sent = await engine.services.database.turns.sent(task.id)
        (changed, *_) = results(engine.watcher.nodes())
    (prompt, *_) = (str(message["content"]) for message in server.requests[0].sent_messages)
    assert "response_format" in server.requests[0].body
    assert prompt_text("short_rules") in prompt and prompt_text("task_rules") not in prompt
    assert prompt_text("short_rules") in [part.text for part in stored]
    assert "-old\n+new" in changed.text  # what only small models are told
    assert sent is not None and {part.part: part.items for part in sent.parts}["tools"] == 6


async def test_the_tools_are_chosen_again_when_the_server_has_another_model(tmp_path: Path) -> None:
    replies = iter([Reply(calls=(Call("bash", {"command": "true"}),)), _ANSWERED])

    def answer(request: ReceivedRequest) -> Reply:
        server.pages.update(llama_cpp("small.gguf", window=32_768))
        return next(replies)

    silent: Page = 500, {"error": "starting"}
    server = ModelServer(answer=answer, pages={"/v1/models": silent, "/props": silent})
    async with engine_parts(tmp_path, server) as engine:
        engine.services.keys.add_environment({"LLAMA_CPP_API_BASE": server.url})
        ended = await engine.watcher.end((await engine.services.runner.start(_changing(engine))).id)
    before, after = server.requests
    assert "grep" in before.offered and "response_format" not in before.body
    assert prompt_text("task_rules") in str(before.sent_messages[0]["content"])
    assert not after.offered and "response_format" in after.body
    assert prompt_text("short_rules") in str(after.sent_messages[0]["content"])
    assert '"name": "bash"' in str(after.sent_messages) and '"grep"' not in str(after.sent_messages)
    assert (ended.outcome.summary, len(server.requests)) == ("Done.", 2)


async def test_servers_at_two_addresses_may_name_their_models_alike(tmp_path: Path) -> None:
    def server(window: int, *, tools: bool) -> ModelServer:
        pages = llama_cpp("m.gguf", window=window, tools=tools, parameters=32_000_000_000)
        return ModelServer(answer=lambda request: Reply(text="hello"), pages=pages)

    large, little = server(32_768, tools=True), server(4_096, tools=False)
    async with little, engine_parts(tmp_path, large) as engine:
        records: list[int | None] = []
        for address in (large.url, little.url, large.url):
            params = TaskStartParams(
                prompt="hi", model="openai_compatible/m.gguf", api_base=address, workspace=str(engine.workspace)
            )
            task = await engine.watcher.end((await engine.services.runner.start(params)).id)
            explained = await record_of(engine, task.id)
            records.append(explained.head.window)
    assert records == [32_768, 4_096, 32_768]
    assert ["grep" in request.offered for request in (*large.requests, *little.requests)] == [True, True, False]
    assert "<tool" in str(little.requests[0].body) and "<tool" not in str(large.requests[1].body["messages"])


async def test_a_wait_for_a_loading_server_can_be_stopped(tmp_path: Path) -> None:
    server = ModelServer(pages=loading_llama_cpp())
    async with engine_parts(tmp_path, server) as engine:
        engine.services.keys.add_environment({"LLAMA_CPP_API_BASE": server.url})
        task = await engine.services.runner.start(TaskStartParams(prompt="hi", workspace=str(engine.workspace)))
        await engine.watcher.task(task.id, lambda task: task.activity.awaits_server)
        await engine.services.runner.stop(task.id, "a person")
        ended = await engine.watcher.end(task.id)
    assert (ended.activity.status, server.requests) == ("cancelled", [])


async def test_a_task_whose_engine_was_killed_while_a_model_loaded_goes_on_with_what_it_needs(tmp_path: Path) -> None:
    killed = ModelServer(pages=loading_llama_cpp())
    ready = ModelServer(answer=lambda request: _ANSWERED, pages=llama_cpp("small.gguf"))
    async with engine_parts(tmp_path, killed) as engine:
        engine.services.keys.add_environment({"LLAMA_CPP_API_BASE": killed.url})
        task = await engine.services.runner.start(_changing(engine))
        await engine.watcher.task(task.id, lambda task: task.activity.awaits_server)
        await engine.services.log.flush()
        crash(engine, tmp_path / "next")
        await engine.services.runner.stop(task.id, "the test")
        await engine.watcher.end(task.id)
    async with engine_parts(tmp_path / "next", ready) as engine:
        engine.services.keys.add_environment({"LLAMA_CPP_API_BASE": ready.url})
        stored_task = await engine.services.database.tasks.get(task.id)
        await engine.services.runner.resume(task.id)
        ended = await engine.watcher.end(task.id)
        stored = await engine.services.database.prompts.of_task(task.id)
    assert stored_task is not None and not stored_task.activity.awaits_server
    assert not [state for state in engine.watcher.tasks(task.id) if state.activity.awaits_server]
    assert ended.outcome.summary == "Done."
    request = ready.requests[0]
    assert "response_format" in request.body
    assert str(request.sent_messages[0]["content"]).startswith("\n\n".join(part.text for part in stored if part.text))


async def test_a_task_takes_the_other_model_of_a_restarted_server_and_says_so(tmp_path: Path) -> None:
    server = ModelServer([Reply(text="hello")], pages=llama_cpp("new.gguf"))
    async with engine_parts(tmp_path, server) as engine:
        engine.services.keys.add_environment({"LLAMA_CPP_API_BASE": server.url})
        params = TaskStartParams(prompt="hi", model="llama_cpp/old.gguf", workspace=str(engine.workspace))
        await engine.watcher.end((await engine.services.runner.start(params)).id)
        nodes = engine.watcher.nodes()
    notices = [notice_text(block) for node in nodes for block in node.blocks if isinstance(block, NoticeBlock)]
    assert notices == ["The server of llama_cpp/old.gguf serves llama_cpp/new.gguf now, so that was asked."]
    assert [request.body["model"] for request in server.requests] == ["new.gguf"]


async def test_a_template_without_tools_means_tools_as_text_from_the_first_request(tmp_path: Path) -> None:
    server = ModelServer([Reply(text="hello")], pages=llama_cpp("bare.gguf", window=32768, tools=False))
    async with engine_parts(tmp_path, server) as engine:
        engine.services.keys.add_environment({"LLAMA_CPP_API_BASE": server.url})
        task = await engine.services.runner.start(TaskStartParams(prompt="hi", workspace=str(engine.workspace)))
        await engine.watcher.end(task.id)
        nodes = engine.watcher.nodes()
    notices = [notice_text(block) for node in nodes for block in node.blocks if isinstance(block, NoticeBlock)]
    assert "tools" not in server.requests[0].body
    assert notices == [
        "llama_cpp/bare.gguf does not support tool calls. Tools are described in its prompt and it writes calls as "
        "text, which is less reliable. For long tasks, choose a model with tool calls."
    ]


async def test_how_much_of_a_request_is_read_is_shown_and_not_stored(tmp_path: Path) -> None:
    may_reply = asyncio.Event()
    progress = tuple(_progress(processed) for processed in (0, 256, 300))
    end = Reply(text="hello").pieces()
    reply = Reply(raw=(*progress[:2], progress[2], *end), stall_after=2, rest=may_reply)
    server = ModelServer([reply], pages=llama_cpp("m.gguf", window=32768))
    async with engine_parts(tmp_path, server) as engine:
        engine.services.keys.add_environment({"LLAMA_CPP_API_BASE": server.url})
        task = await engine.services.runner.start(TaskStartParams(prompt="hi", workspace=str(engine.workspace)))
        reading = PromptReading(conversation_id=task.conversation_id, task_id=task.id, processed=256, total=300)
        await engine.watcher.until(lambda: reading in engine.watcher.deltas)
        may_reply.set()
        ended = await engine.watcher.end(task.id)
    assert server.requests[0].body["return_progress"] is True
    assert (ended.activity.status, ended.outcome.summary) == ("completed", "hello")
    assert not any("reading" in task.activity.detail for task in engine.watcher.tasks(task.id))


async def test_only_llama_cpp_is_asked_for_its_progress(tmp_path: Path) -> None:
    server = ModelServer([Reply(text="hello")], pages=vllm("m", 32768))
    async with engine_parts(tmp_path, server) as engine:
        engine.services.keys.add_environment({"VLLM_API_BASE": server.url})
        task = await engine.services.runner.start(TaskStartParams(prompt="hi", workspace=str(engine.workspace)))
        await engine.watcher.end(task.id)
    assert "return_progress" not in server.requests[0].body


async def test_an_ollama_loads_its_model_first_and_its_small_window_is_said(tmp_path: Path) -> None:
    server = ModelServer([Reply(text="hello")], pages=ollama("m:latest", parameters="num_ctx 8192"))

    def load() -> Page:
        server.pages.update(ollama("m:latest", window=8192, parameters="num_ctx 8192"))
        return 200, {"model": "m:latest", "response": "", "done": True, "done_reason": "load"}

    server.pages["/api/generate"] = load
    async with engine_parts(tmp_path, server) as engine:
        engine.services.keys.add_environment({"OLLAMA_HOST": server.url})
        task = await engine.services.runner.start(TaskStartParams(prompt="hi", workspace=str(engine.workspace)))
        await engine.watcher.end(task.id)
        nodes, changes = engine.watcher.nodes(), engine.watcher.tasks(task.id)
    notices = [notice_text(block) for node in nodes for block in node.blocks if isinstance(block, NoticeBlock)]
    assert f"Ollama at :{_port(server)} is loading its model" in [task.activity.detail for task in changes]
    assert [text[:60] for text in notices] == ["Ollama gives ollama/m:latest 8,192 of its 32,768 tokens of c"]


async def test_what_cannot_fit_into_the_window_of_an_ollama_is_not_sent(tmp_path: Path) -> None:
    server = ModelServer([Reply(text="hello")], pages=ollama("m:latest", window=512, parameters="num_ctx 512"))
    async with engine_parts(tmp_path, server) as engine:
        engine.services.keys.add_environment({"OLLAMA_HOST": server.url})
        task = await engine.services.runner.start(TaskStartParams(prompt="hi", workspace=str(engine.workspace)))
        ended = await engine.watcher.end(task.id)
    assert (ended.outcome.error or "").endswith("or start Ollama with OLLAMA_CONTEXT_LENGTH=8192.")
    assert server.requests == []


def _changing(engine: EngineParts) -> TaskStartParams:
    return TaskStartParams(
        prompt="hi", model="llama_cpp/small.gguf", workspace=str(engine.workspace), mode="task", approve="all"
    )


def _progress(processed: int) -> bytes:
    delta = {"role": "assistant", "content": None}
    chunk = {
        "choices": [{"finish_reason": None, "index": 0, "delta": delta}],
        "object": "chat.completion.chunk",
        "prompt_progress": {"total": 300, "cache": 0, "processed": processed, "time_ms": 3608},
    }
    return b"data: " + msgspec.json.encode(chunk) + b"\n\n"


def _port(server: ModelServer) -> str:
    return server.url.rpartition(":")[2].removesuffix("/v1")
