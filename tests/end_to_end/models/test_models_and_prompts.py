"""Behaviours 150 to 154: several models asked at once, a chat continued as a task, prompts and personalities."""

from pathlib import Path

import msgspec

from errand.protocol.agents import Personality
from errand.protocol.context import PromptPart
from tests.support.command_line import Errand
from tests.support.flat_tasks import printed_task
from tests.support.local_servers import llama_cpp
from tests.support.model_server import Call, ModelServer, ReceivedRequest, Reply


def named(request: ReceivedRequest) -> Reply:
    return Reply(text=f"I am {request.body['model']}.")


async def test_several_models_answer_one_message_and_their_branches_are_compared(errand: Errand) -> None:
    async with ModelServer(answer=named) as server:
        models = ("-m", "openai_compatible/one", "-m", "openai_compatible/two", "--api-base", server.url)
        asked = await errand.run("ask-models", *models, "--json", "Who are you?")
        tasks = [printed_task(line) for line in asked.out.splitlines()]
        assert [(task.outcome.summary, task.options.decided) for task in tasks] == [
            ("I am one.", "chat"),
            ("I am two.", "chat"),
        ]
        answers = await errand.run("ask-models", *models, "Who are you?")
        assert answers.code == 0
        assert (
            answers.out.index("openai_compatible/one") < answers.out.index("I am one.") < answers.out.index("I am two.")
        )
        refused = await errand.run("ask-models", "-m", "openai_compatible/one", "Who are you?")
        assert refused.code == 2 and "at least two" in refused.err


async def test_a_provider_or_one_model_of_it_is_tried_for_real(own_errand: Errand) -> None:
    async with ModelServer(answer=named) as server:
        moved = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-of-the-test"}
        tested = await own_errand.run("models", "--test", "react/openai/gpt-5-mini", variables=moved)
        all_of_them = await own_errand.run("models", "--test", "openai", variables=moved)
        none = await own_errand.run("models", "--test", "openai/", variables=moved)
    assert (tested.code, tested.out.partition("  ")[0]) == (0, "✓ react/openai/gpt-5-mini"), tested.err
    assert (all_of_them.code, all_of_them.out.partition("  ")[0]) == (0, "✓ openai/gpt-5.4")
    assert none.code == 0 and "✓ openai/gpt-5.4" in none.out


async def test_a_chat_that_has_answered_goes_on_as_a_task(errand: Errand) -> None:
    replies = [Reply(text="You could."), Reply(calls=(Call("task_complete", {"summary": "Done now."}),))]
    async with ModelServer(replies=replies) as server:
        model = ("--model", "openai_compatible/test-model", "--api-base", server.url)
        answered = await errand.run("run", *model, "could one?")
        assert "answered, no tool used" in answered.out
        chat = await errand.task("completed")
        changed = await errand.run("mode", chat.id, "task")
        assert "It continues as task" in changed.out
        refused = await errand.run("mode", chat.id, "task")
        assert refused.code == 1 and "gone on since" in refused.err


async def test_the_prompt_is_shown_in_its_parts(errand: Errand, workspace: Path) -> None:
    (workspace / "AGENTS.md").write_text("Use tabs.")
    prompt = await errand.run("prompt", "--personality", "Writer", "--json")
    parts = msgspec.json.decode(prompt.out, type=tuple[PromptPart, ...])
    assert [part.name for part in parts] == ["role", "rules", "instructions", "workspace"]
    assert parts[2].sources == (str(workspace / "AGENTS.md"),)
    plain = await errand.run("prompt", "--mode", "chat")
    assert "instructions · " in plain.out and "You talk with a person" in plain.out
    unknown = await errand.run("prompt", "--personality", "Nobody")
    assert unknown.code == 2 and "There are: Assistant" in unknown.err


async def test_a_personality_is_carried_to_a_file_and_back_as_a_new_one(errand: Errand, workspace: Path) -> None:
    file = workspace / "coder.json"
    await errand.run("personalities", "export", "coder", "--to", str(file))
    again = await errand.run("personalities", "export", "Coder", "--to", str(file))
    assert again.code == 2 and "--overwrite" in again.err
    await errand.run("personalities", "import", str(file))
    listed = await errand.run("personalities", "--json")
    personalities = [msgspec.json.decode(line, type=Personality) for line in listed.out.splitlines()]
    coders = {personality.name: personality for personality in personalities if personality.name.startswith("Coder")}
    assert coders.keys() == {"Coder", "Coder 2"}
    assert coders["Coder 2"].system_prompt == coders["Coder"].system_prompt
    file.write_text("{}")
    broken = await errand.run("personalities", "import", str(file))
    assert broken.code == 2 and "isn't a personality" in broken.err


async def test_of_a_small_model_the_prompt_shows_what_it_was_told_of_the_folder(own_errand: Errand) -> None:
    answer = Reply(text='{"name": "answer", "arguments": {"text": "Hello."}}')
    async with ModelServer([answer], pages=llama_cpp("small.gguf", window=32_768)) as server:
        own_errand.environment["LLAMA_CPP_API_BASE"] = server.url
        await own_errand.run("run", "--approve", "plan", "greet me")
        printed = await own_errand.run("prompt", (await own_errand.task("completed")).id)
    (system, *_) = (str(message["content"]) for message in server.requests[0].sent_messages)
    assert "<environment>" not in printed.out
    assert "## Plan mode" in printed.out
    assert printed.out[printed.out.index("Today is") :].rstrip() in system
