"""Files and commands that the last words of a task name, and no call of it."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from errand.engine.agent.loop.events import MessageEnd
from errand.engine.agent.run.replies.untouched_names import CallNames
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.messages import (
    AssistantMessage,
    ContextText,
    Image,
    Message,
    Text,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    user_text,
)
from errand.engine.models.base import ModelRequest
from errand.protocol.base import JsonObject


def call(**arguments: str) -> AssistantMessage:
    values: JsonObject = dict(arguments)
    return AssistantMessage((ToolCall("1", "shell", values),), "tool_use")


def result(text: str) -> ToolResultMessage:
    return ToolResultMessage("1", "shell", (Text(text),))


async def untouched(
    folder: Path, claim: str, *messages: Message, history: tuple[Message, ...] = (), is_declared: bool = True
) -> tuple[str, ...]:
    names = CallNames(history, len(history))
    for message in messages:
        await names.on_event(MessageEnd(message))
    return await names.untouched(claim, folder, datetime.now(UTC), is_declared=is_declared)


@pytest.mark.parametrize(
    ("claim", "names"),
    [
        ("I wrote report.md.", ("report.md",)),
        ("I wrote `out/report.md` and out/data.csv, as you said.", ("out/report.md", "out/data.csv")),
        ("a.txt, b.txt, c.txt and d.txt are done.", ("a.txt", "b.txt", "c.txt")),
        ("Listed the folder: notes.txt is there, Notes.TXT too.", ()),
        ("I sorted with list.sort, see os.path, e.g. in Node.js 2.0 at https://example.org/page.html.", ()),
        ("Mail ines@example.de about version 1.2.md5 and self.value.", ()),
        ("Alles fertig, d.h. die Tests laufen (i.d.R. schnell), also in Washington D.C. and on www.example.pl.", ()),
        ("Removed each console.log() of the next.js page.", ()),
        ("The log is /tmp/run.log.", ()),
        ("Nothing was left to do.", ()),
    ],
)
async def test_a_declaration_is_judged_by_each_file_that_it_names(
    tmp_path: Path, claim: str, names: tuple[str, ...]
) -> None:
    assert await untouched(tmp_path, claim, user_text("go"), call(command="ls"), result("notes.txt\n")) == names


async def test_a_reply_is_judged_by_the_files_that_people_named(tmp_path: Path) -> None:
    claim = "I updated README.md. You could add a settings.json."
    messages = (user_text("Update README.md."), call(command="ls -a"), result("a\nb\n"))
    assert await untouched(tmp_path, claim, *messages, is_declared=False) == ("README.md",)


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "docs/README.md", "content": "x"},
        {"command": "sed -i s/a/b/ ./README.md"},
        {"command": "rm *.md"},
        {"command": "cat READ?E.md"},
    ],
)
async def test_a_file_in_the_arguments_of_a_call_is_touched(tmp_path: Path, arguments: dict[str, str]) -> None:
    messages = (user_text("Update README.md."), call(**arguments), result("done"))
    assert await untouched(tmp_path, "I updated README.md.", *messages) == ()


async def test_a_file_that_has_changed_on_disk_is_touched(tmp_path: Path) -> None:
    (tmp_path / "out_1.csv").write_text("1\n")
    messages = (user_text("go"), call(command="python3 make.py"), result("ok"))
    assert await untouched(tmp_path, "I wrote out_1.csv and out_2.csv.", *messages) == ("out_2.csv",)


async def test_a_file_that_was_moved_or_unpacked_is_touched_though_its_content_is_old(tmp_path: Path) -> None:
    unpacked = tmp_path / "data.csv"
    unpacked.write_text("1\n")
    os.utime(unpacked, (0, 0))
    assert await untouched(tmp_path, "I unpacked data.csv.", user_text("go"), call(command="unzip a.zip")) == ()


async def test_a_new_file_is_looked_for_in_the_folders_below_and_at_its_own_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, home = tmp_path / "work", tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    for file in (workspace / "out" / "en" / "data.csv", home / "notes.md"):
        file.parent.mkdir(parents=True)
        file.write_text("1\n")
    claim = f"I wrote data.csv, en/data.csv, ~/notes.md, {home}/notes.md, de/data.csv and /notes.md."
    names = await untouched(workspace, claim, user_text("go"), call(command="python3 make.py"))
    assert names == ("de/data.csv", "/notes.md")


async def test_files_that_the_instructions_name_are_known_unless_people_name_them(tmp_path: Path) -> None:
    claim, names = "I ran the tests as AGENTS.md says.", CallNames((), 0)
    await names.before_request(ModelRequest("m", "Instructions from AGENTS.md: run the tests.", ()), CancelSignal())
    assert await names.untouched(claim, tmp_path, datetime.now(UTC), is_declared=True) == ()
    await names.on_event(MessageEnd(user_text("Update AGENTS.md.")))
    assert await names.untouched(claim, tmp_path, datetime.now(UTC), is_declared=True) == ("AGENTS.md",)


async def test_files_of_earlier_tasks_count_unless_people_name_them_again(tmp_path: Path) -> None:
    history = (user_text("Fix a.py."), call(path="a.py"), result("fixed"), AssistantMessage((Text("Fixed."),)))
    work = (call(command="ls"), result("x"))
    claim = "a.py is still fine."
    assert await untouched(tmp_path, claim, user_text("And now?"), *work, history=history) == ()
    assert await untouched(tmp_path, claim, user_text("Check a.py."), *work, history=history) == ("a.py",)


async def test_commands_count_if_people_named_their_program(tmp_path: Path) -> None:
    work = (call(command="ls"), result("x"))
    claim = "I ran `pytest -q`: all pass. Start it with `npm start`; `value` is 2."
    asked = user_text("Run pytest and tell me the value.")
    assert await untouched(tmp_path, claim, asked, *work, is_declared=False) == ("pytest -q",)
    ran = (call(command=".venv/bin/python -m pytest -x"), result("1 passed"))
    assert await untouched(tmp_path, claim, asked, *ran) == ()


async def test_the_form_of_an_umlaut_in_a_name_does_not_matter(tmp_path: Path) -> None:
    work = (call(command="ls"), result("U\u0308bersicht.md"))
    assert await untouched(tmp_path, "Gelesen: \u00dcbersicht.md, \u00dcbung.md.", user_text("go"), *work) == (
        "Übung.md",
    )


async def test_a_tool_that_is_a_program_counts_as_run(tmp_path: Path) -> None:
    ran = AssistantMessage((ToolCall("1", "python", {"code": "print(1)"}),), "tool_use")
    assert await untouched(tmp_path, "`python` printed 1.", user_text("Use python to print 1."), ran) == ()
    assert await untouched(tmp_path, "`bash` lists a.", user_text("List it with bash."), call(command="ls")) == ()


async def test_an_attached_picture_is_seen_without_a_call(tmp_path: Path) -> None:
    asked = UserMessage((Text("What is in cat.png, and what in dog.txt?"), Image("image/png", "AAAA")))
    claim = "cat.png shows a cat, dog.txt a dog."
    assert await untouched(tmp_path, claim, asked, call(command="ls"), result("x")) == ("dog.txt",)


async def test_a_listing_of_the_folder_neither_asks_for_a_file_nor_touches_it(tmp_path: Path) -> None:
    asked = UserMessage((ContextText("At its top: `a.txt`, `b.txt`.", "environment"), Text("Change b.txt.")))
    claim, work = "a.txt and b.txt are changed.", (call(command="true"), result("(no output)"))
    assert await untouched(tmp_path, claim, asked, *work, is_declared=False) == ("b.txt",)
    assert await untouched(tmp_path, claim, asked, *work) == ("a.txt", "b.txt")


async def test_what_memory_has_is_known_without_a_call(tmp_path: Path) -> None:
    asked = UserMessage((ContextText("Deploys are described in deploy.md.", "memory"), Text("How do I deploy?")))
    assert await untouched(tmp_path, "As deploy.md says.", asked, call(command="ls"), result("x")) == ()


async def test_a_task_with_a_very_long_result_is_not_judged(tmp_path: Path) -> None:
    messages = (user_text("go"), call(command="cat big"), result("x" * 200_001))
    assert await untouched(tmp_path, "I wrote report.md.", *messages) == ()


@pytest.mark.parametrize("text", ["a/" * 100_000, "a." * 100_000, "a.a/" * 60_000, "`" * 19_000, "*" * 200_000])
async def test_long_texts_of_others_are_read_in_bounded_time(tmp_path: Path, text: str) -> None:
    assert await untouched(tmp_path, text[:19_999], user_text(text), call(command=text), result(text)) == ()
