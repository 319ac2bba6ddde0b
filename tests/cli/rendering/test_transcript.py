"""The text of a conversation's events."""

from datetime import UTC, datetime

import msgspec

from errand.cli.rendering.transcript import TranscriptRenderer, with_label
from errand.cli.terminal.style import PLAIN, Style
from errand.engine.tools.call_display import with_displays
from errand.protocol.base import JsonObject
from errand.protocol.blocks import ImageBlock, NoticeBlock, TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock
from errand.protocol.events import AskUpdate, PromptReading, TaskMessage, TaskUpdate, TextDelta
from errand.protocol.notices import EndedProcess, LimitReached, TaskFailed, TaskStopped
from errand.protocol.tasks.groups import Queued, TodoItem
from errand.protocol.tasks.task import replace_fields
from tests.support.protocol_events import approval, node, question, task


def transcript(*, streams: bool = True, style: Style = PLAIN) -> TranscriptRenderer:
    return TranscriptRenderer(style, 80, streams=streams)


def piece(text: str, offset: int, block: int = 0) -> TextDelta:
    return TextDelta(
        conversation_id="conversation_1",
        task_id="task_1",
        node_id="node_1",
        block=block,
        kind="text",
        offset=offset,
        text=text,
    )


def call(tool: str, arguments: JsonObject) -> TaskMessage:
    block = ToolCallBlock(call_id="call_1", tool=tool, arguments=arguments)
    return TaskMessage(node=with_displays(node("assistant", block, identifier="node_call")))


def result(tool: str, summary: str = "", details: JsonObject | None = None, *, is_error: bool = False) -> TaskMessage:
    block = ToolResultBlock(
        call_id="call_1", tool=tool, text="text for the model", is_error=is_error, summary=summary, details=details
    )
    return TaskMessage(node=with_displays(node("tool_result", block, identifier="node_result")))


def test_a_streamed_reply_is_shown_once_and_closed_by_its_finished_node() -> None:
    renderer = transcript()
    parts = [renderer.delta(piece("Hello ", 0)), renderer.delta(piece("wor", 6))]
    parts.append(renderer.event(TaskMessage(node=node("assistant", TextBlock(text="Hello world")))))
    assert "".join(parts) == "Hello world\n"


def test_a_reply_whose_pieces_were_missed_is_completed_by_its_finished_node() -> None:
    renderer = transcript()
    parts = [renderer.delta(piece("Hello ", 0)), renderer.delta(piece("lost before", 9))]
    parts.append(renderer.event(TaskMessage(node=node("assistant", TextBlock(text="Hello world")))))
    assert "".join(parts) == "Hello world\n"


def test_a_chat_is_not_called_complete() -> None:
    ended = replace_fields(task("completed", stop_reason="completed"), mode="chat")
    assert transcript().event(TaskUpdate(task=ended)).startswith("✓ answered in chat mode")


def test_engine_messages_are_shown_and_typed_user_messages_are_not_repeated() -> None:
    renderer = transcript()
    message = node("user", TextBlock(text="Go on."))
    renderer.feed.mark_typed("Go on. ")
    assert renderer.event(TaskMessage(node=message)) == ""
    engine_message = msgspec.structs.replace(message, id="node_2", author="engine")
    assert renderer.event(TaskMessage(node=engine_message)) == "Errand told the agent: “Go on.”\n"


def test_task_of_a_sub_agent_is_shown_as_markdown_under_the_name_of_its_caller() -> None:
    instructions = TextBlock(text="# Part\n\nRead *all*.", task_from="Assistant")
    message = msgspec.structs.replace(node("user", instructions), author="engine")
    assert transcript().event(TaskMessage(node=message)) == "Task from Assistant:\n# Part\n\nRead *all*.\n"


def test_a_retried_reply_starts_again_on_a_line_of_its_own() -> None:
    renderer = transcript()
    parts = [renderer.delta(piece("Hel", 0)), renderer.delta(piece("Good day", 0))]
    parts.append(renderer.event(TaskMessage(node=node("assistant", TextBlock(text="Good day")))))
    assert "".join(parts) == "Hel\n(starting again)\nGood day\n"


def test_without_streaming_a_reply_is_shown_whole() -> None:
    renderer = transcript(streams=False)
    assert renderer.delta(piece("Hello ", 0)) == ""
    assert renderer.event(TaskMessage(node=node("assistant", TextBlock(text="Hello world\n")))) == "Hello world\n"


def test_the_same_event_twice_shows_nothing_new() -> None:
    renderer = transcript()
    events = (
        TaskMessage(node=node("assistant", TextBlock(text="Hello"))),
        AskUpdate(ask=question("formal")),
        TaskUpdate(task=task("completed", stop_reason="completed")),
    )
    assert all(renderer.event(event) for event in events)
    assert [renderer.event(event) for event in events] == ["", "", ""]


def test_what_a_person_said_elsewhere_stands_in_its_place() -> None:
    renderer = transcript()
    first = node("user", TextBlock(text="count the files\nof all folders"))
    assert renderer.event(TaskMessage(node=first)) == "> count the files\n> of all folders\n"
    assert (
        renderer.event(TaskMessage(node=node("assistant", TextBlock(text="Three."), identifier="node_2"))) == "Three.\n"
    )
    again = msgspec.structs.replace(first, id="node_3")
    assert renderer.event(TaskMessage(node=again)) == "\n> count the files\n> of all folders\n"


def test_reasoning_is_shown_if_it_is_asked_for_and_told_from_the_answer() -> None:
    thought = node("assistant", ThinkingBlock(text="hm, hm"), TextBlock(text="Three."))
    assert transcript().event(TaskMessage(node=thought)) == "Three.\n"
    renderer = TranscriptRenderer(PLAIN, 80, thinking=True)
    assert renderer.event(TaskMessage(node=thought)) == "(thinking) hm, hm\nThree.\n"
    dim = TranscriptRenderer(Style(colour=True, unicode=True), 80, thinking=True)
    assert dim.event(TaskMessage(node=thought)).startswith("\x1b[2mhm,\x1b[0m \x1b[2mhm\x1b[0m\n")


def test_streamed_reasoning_ends_before_the_answer_and_is_shown_once() -> None:
    renderer = TranscriptRenderer(PLAIN, 80, thinking=True)
    thinking = [msgspec.structs.replace(piece(text, at), kind="thinking") for text, at in (("hm, ", 0), ("hm", 4))]
    parts = [renderer.delta(delta) for delta in (*thinking, piece("Three ", 0, 1))]
    finished = node("assistant", ThinkingBlock(text="hm, hm"), TextBlock(text="Three files"))
    assert "".join([*parts, renderer.event(TaskMessage(node=finished))]) == "(thinking) hm, hm\nThree files\n"


def test_heads_name_who_speaks_and_the_message() -> None:
    renderer = TranscriptRenderer(PLAIN, 80, heads=True)
    message = msgspec.structs.replace(node("user", TextBlock(text="count"), identifier="node_12345678"), task_id=None)
    first, question, *_ = renderer.event(TaskMessage(node=message)).splitlines()
    assert (first[:6], first[-11:], question) == ("you · ", " · 12345678", "> count")
    reply = node("assistant", TextBlock(text="Three."), identifier="node_87654321")
    blank, head, text = renderer.event(TaskMessage(node=reply)).splitlines()
    assert (blank, head[:8], head[-11:], text) == ("", "agent · ", " · 87654321", "Three.")
    more = msgspec.structs.replace(reply, id="node_3")
    assert renderer.event(TaskMessage(node=more)) == "Three.\n", "the head stands once"


def test_a_command_is_one_line_with_its_outcome_and_time() -> None:
    renderer = transcript()
    assert renderer.event(call("shell", {"command": "pytest -q"})) == ""
    assert (
        renderer.event(result("shell", "12 passed", {"duration_ms": 1234})) == "● ran `pytest -q` · 12 passed · 1.2 s\n"
    )


def test_a_result_whose_call_was_not_shown_has_the_name_of_its_tool() -> None:
    assert transcript().event(result("shell", "exit 0", {"duration_ms": 1234})) == "● used shell · exit 0 · 1.2 s\n"


def test_a_failed_command_says_so_with_the_end_of_its_output() -> None:
    renderer = transcript()
    renderer.event(call("shell", {"command": "pytest -q"}))
    assert renderer.event(result("shell", "exit 1", {"exit_code": 1}, is_error=True)) == (
        "✗ ran `pytest -q` · exit 1\n    text for the model\n"
    )


def test_the_end_of_an_output_has_the_lines_of_the_program_that_begin_with_a_bracket() -> None:
    renderer = transcript()
    renderer.event(call("shell", {"command": "mvn"}))
    failed = result("shell", "exit 1", {"exit_code": 1, "last_lines": ["[ERROR] no goal"]}, is_error=True)
    assert renderer.event(failed) == "✗ ran `mvn` · exit 1\n    [ERROR] no goal\n"


def test_a_call_that_was_refused_is_not_said_to_have_run() -> None:
    renderer = transcript()
    renderer.event(call("shell", {"command": "rm -r build"}))
    assert renderer.event(result("shell", "denied", is_error=True)) == "✗ running `rm -r build` · denied\n"


def test_a_long_reason_stands_whole_below_the_call() -> None:
    renderer = transcript()
    renderer.event(call("shell", {"command": "cat /etc/shadow"}))
    reason = "Not allowed: /etc/shadow is in /etc, which holds settings of the system and the passwords"
    assert renderer.event(result("shell", reason, is_error=True)).splitlines() == [
        "✗ running `cat /etc/shadow`",
        "    Not allowed: /etc/shadow is in /etc, which holds settings of the system and",
        "    the passwords",
    ]


def test_a_change_of_a_file_shows_its_diff() -> None:
    renderer = transcript()
    renderer.event(call("code", {"action": "patch", "path": "a.py"}))
    diff = "--- a.py\n+++ a.py\n@@ -1,2 +1,2 @@\n same\n-old\n+new\n"
    assert renderer.event(result("code", "+1 −1", {"diff": diff})) == (
        "● changed `a.py` · +1 −1\n     same\n    -old\n    +new\n"
    )


def test_call_to_approve_is_shown_completely() -> None:
    removed = "-- drop the table"
    lines = "".join(f"+line {number} {'x' * 200}\n" for number in range(100))
    asked = approval()
    assert asked.approval is not None
    preview = f"--- a.sql\n+++ a.sql\n@@ -1,1 +1,100 @@\n-{removed}\n{lines}"
    previewed = msgspec.structs.replace(asked.approval, preview=preview, command=None)
    text = transcript().event(AskUpdate(ask=msgspec.structs.replace(asked, approval=previewed)))
    assert f"    -{removed}\n" in text
    assert all(f"    +line {number} {'x' * 60}" in text for number in range(100))


def test_a_diff_that_was_just_allowed_is_not_shown_again() -> None:
    renderer = transcript()
    asked = approval()
    assert asked.approval is not None
    previewed = msgspec.structs.replace(asked.approval, preview="-old\n+new\n", command=None)
    first = renderer.event(AskUpdate(ask=msgspec.structs.replace(asked, approval=previewed)))
    renderer.event(call("code", {"action": "patch", "path": "a.py"}))
    assert "    +new" in first
    assert "+new" not in renderer.event(result("code", "+1 −1", {"diff": "-old\n+new\n"}))


def test_reply_is_shown_without_markdown_marks_if_colours_are_available() -> None:
    renderer = transcript(style=Style(colour=True, unicode=True))
    parts = [renderer.delta(piece("All **go", 0)), renderer.delta(piece("od** now", 8))]
    parts.append(renderer.event(TaskMessage(node=node("assistant", TextBlock(text="All **good** now")))))
    assert "".join(parts) == "All \x1b[1mgood\x1b[0m now\n"


def test_a_diff_is_coloured_where_colours_are_allowed() -> None:
    renderer = transcript(style=Style(colour=True, unicode=True))
    renderer.event(call("code", {"action": "patch", "path": "a.py"}))
    text = renderer.event(result("code", "+1 −1", {"diff": "-old\n+new\n"}))
    assert "\x1b[31m    -old\x1b[0m" in text
    assert "\x1b[32m    +new\x1b[0m" in text


def test_a_diff_of_ten_thousand_lines_is_cut_and_says_by_how_much() -> None:
    renderer = transcript()
    text = renderer.event(result("code", "+10000 −0", {"diff": "+line\n" * 10_000}))
    assert len(text.splitlines()) == 42
    assert text.endswith("… 9,960 more lines\n")


def test_escape_sequences_of_models_and_tools_never_reach_the_terminal() -> None:
    renderer = transcript()
    evil = "a\x1b]0;title\x07b\x1b[2Jc\x9b1md\r"
    parts = [
        renderer.delta(piece(evil, 0)),
        renderer.event(call("shell", {"command": evil})),
        renderer.event(result("shell", evil, {"diff": f"+{evil}"})),
        renderer.event(AskUpdate(ask=approval(command=evil))),
    ]
    assert not any(sign in part for part in parts for sign in ("\x1b", "\x07", "\x9b", "\r"))


def test_hidden_characters_of_a_command_to_approve_are_escaped() -> None:
    text = transcript().event(AskUpdate(ask=approval(command="ls\u202e; rm -r /\x1b[8m")))
    assert "ls\\u202e; rm -r /\\u001b[8m" in text


def test_an_approval_shows_the_exact_command_the_folder_the_paths_and_the_risk_in_words() -> None:
    assert transcript().event(AskUpdate(ask=approval())).splitlines() == [
        "! Approval needed · high risk, look closely",
        "  run    rm -r build",
        "  in     /work",
        "  writes /work/build",
        "  why    commands ask",
        "  rule 1 Exactly this command, in /tmp.",
    ]


def test_a_settled_ask_says_who_settled_it_and_how() -> None:
    renderer = transcript()
    allowed = msgspec.structs.replace(
        approval(), status="answered", allowed=True, remember="conversation", answered_by="window"
    )
    answered = msgspec.structs.replace(question(), id="ask_2", status="answered", answer="warm", answered_by="phone")
    assert renderer.event(AskUpdate(ask=allowed)) == "  → allowed in this conversation by window\n"
    assert renderer.event(AskUpdate(ask=answered)) == "  → answered by phone: warm\n"


def test_notices_of_the_engine_are_shown() -> None:
    ended = EndedProcess(pid=7, started=1.0, name="sleep 60")
    block = NoticeBlock(kind="stopped", data=TaskStopped(by="me", ended=(ended,)))
    line = transcript().event(TaskMessage(node=node("system", block)))
    assert line == "! Stopped by me. Stopped sleep 60 (pid 7).\n"


def test_a_notice_from_before_notices_had_data_is_shown_by_its_text() -> None:
    block = NoticeBlock(kind="stopped", text="Stopped. Ended: sleep 60 (pid 7).")
    line = transcript().event(TaskMessage(node=node("system", block)))
    assert line == "! Stopped. Ended: sleep 60 (pid 7).\n"


def test_a_cut_reply_is_marked_with_its_reason() -> None:
    renderer = transcript()
    renderer.delta(piece("Hel", 0))
    cut = node("assistant", TextBlock(text="Hello"), status="cut", error="the connection broke")
    assert renderer.event(TaskMessage(node=cut)) == "lo\n✗ reply cut off: the connection broke\n"


def test_completed_task_ends_with_a_badge_its_summary_and_its_usage() -> None:
    ended = task("completed", stop_reason="completed", summary="There are 12 files.")
    assert transcript().event(TaskUpdate(task=ended)) == (
        "There are 12 files.\n✓ task complete · 3 turns · 1,234 tokens · $0.0012 · 4.2 s\n"
    )


def test_summary_equal_to_the_last_text_is_not_repeated() -> None:
    renderer = transcript()
    renderer.event(TaskMessage(node=node("assistant", TextBlock(text="Done. There are 12 files."))))
    ended = task("completed", stop_reason="completed", summary="There are 12 files.")
    assert renderer.event(TaskUpdate(task=ended)).startswith("✓ task complete")


def test_each_other_end_of_a_task_has_its_own_text() -> None:
    ends = {
        "manual_stop": task("cancelled", stop_reason="manual_stop"),
        "budget_limit": task("completed", stop_reason="budget_limit"),
        "error": task("error", stop_reason="error", error="401: check OPENAI_API_KEY"),
    }
    headlines = {name: transcript().event(TaskUpdate(task=ended)).split(" · ")[0] for name, ended in ends.items()}
    assert headlines == {
        "manual_stop": "! task stopped",
        "budget_limit": "! budget reached",
        "error": "✗ task failed",
    }
    assert "  401: check OPENAI_API_KEY" in transcript().event(TaskUpdate(task=ends["error"]))


def test_error_is_shown_once() -> None:
    renderer = transcript()
    failed = node("assistant", status="failed", error="no key")
    notice = node(
        "system", NoticeBlock(kind="error", data=TaskFailed(text="no key", cause="reply")), identifier="node_2"
    )
    events = (
        TaskMessage(node=failed),
        TaskMessage(node=notice),
        TaskUpdate(task=task("error", stop_reason="error", error="no key")),
    )
    assert "".join(renderer.event(event) for event in events).count("no key") == 1


def test_reached_limit_and_ended_processes_are_shown_once() -> None:
    renderer = transcript()
    ended = TaskUpdate(task=task("cancelled", stop_reason="iteration_limit"))
    process = EndedProcess(pid=7, started=1.0, name="sleep")
    data = [LimitReached(limit="turns", value=3, ended=ended) for ended in ((), (process,))]
    notices = [NoticeBlock(kind="limit", data=limit) for limit in data]
    assert renderer.event(TaskMessage(node=node("system", notices[0], identifier="node_1"))) == ""
    assert (
        renderer.event(TaskMessage(node=node("system", notices[1], identifier="node_2")))
        == "! Stopped sleep (pid 7).\n"
    )
    assert renderer.event(ended).startswith("! turn limit reached · ")


def test_the_status_line_says_what_the_task_does_now() -> None:
    renderer = transcript()
    renderer.event(TaskUpdate(task=task("thinking")))
    thinking = renderer.status()
    renderer.delta(piece("I look.", 0))
    answering = renderer.status()
    renderer.event(TaskMessage(node=node("assistant", TextBlock(text="I look."))))
    assert (answering, renderer.status()) == ("answering…", "thinking…")
    renderer.event(call("shell", {"command": "pytest -q"}))
    renderer.event(TaskUpdate(task=task("tool_executing")))
    running = renderer.status()
    renderer.event(TaskUpdate(task=task("tool_executing", stopping=True, activity="stopping, 2 processes left")))
    stopping = renderer.status()
    renderer.event(TaskUpdate(task=task("cancelled", stop_reason="manual_stop")))
    assert (thinking, running, stopping, renderer.status()) == (
        "thinking…",
        "running `pytest -q`",
        "stopping, 2 processes left",
        "",
    )


def test_a_label_stands_before_every_line() -> None:
    assert with_label("one\ntwo\n", "fix | ") == "fix | one\nfix | two\n"


def test_without_unicode_the_signs_are_plain() -> None:
    ended = task("completed", stop_reason="completed")
    text = transcript(style=Style(colour=False, unicode=False)).event(TaskUpdate(task=ended))
    assert text == "+ task complete - 3 turns - 1,234 tokens - $0.0012 - 4.2 s\n"


def test_status_line_shows_the_number_of_queued_messages() -> None:
    renderer = transcript()
    waiting = Queued(id="q1", kind="steer", text="rather that", queued_at=datetime.now(UTC))
    renderer.event(TaskUpdate(task=replace_fields(task(), status="thinking", queue=(waiting,))))
    assert (renderer.status(), renderer.unread()) == ("thinking…", "1 message not read yet")


def test_pictures_of_a_result_are_named_with_their_files() -> None:
    image = ImageBlock(media_type="image/png", path="/data/attachments/1/Figure-1.png", name="Figure 1")
    block = ToolResultBlock(call_id="call_1", tool="python", text="", is_error=False, images=(image,))
    text = transcript().event(TaskMessage(node=with_displays(node("tool_result", block, identifier="node_result"))))
    assert text.splitlines()[1] == "    Figure 1: /data/attachments/1/Figure-1.png"


def test_plan_is_shown_once_and_then_what_changes() -> None:
    renderer, look, work = transcript(), TodoItem(text="look"), TodoItem(text="work")
    planned = replace_fields(task(), todo=(look, work))
    begun = replace_fields(planned, todo=(msgspec.structs.replace(look, status="in_progress"), work))
    assert renderer.event(TaskUpdate(task=planned)) == "  plan: 0 of 2 done\n  ☐ look\n  ☐ work\n"
    assert renderer.event(TaskUpdate(task=begun)) == "  plan: 0 of 2 done\n  ▸ look\n"
    assert renderer.event(TaskUpdate(task=begun)) == ""


def test_sub_agents_are_lines_below_their_task_and_their_replies_are_not_shown() -> None:
    renderer = transcript()
    renderer.event(TaskUpdate(task=task()))
    below = replace_fields(task(identifier="task_2"), parent_id="task_1", depth=1, title="Read the parser")
    message = msgspec.structs.replace(node("assistant", TextBlock(text="Hm.")), task_id="task_2")
    assert renderer.event(TaskUpdate(task=below)) == "  ↳ Read the parser: running\n"
    assert renderer.event(TaskUpdate(task=replace_fields(below, step_count=4))) == ""
    assert renderer.event(TaskMessage(node=message)) == ""
    done = replace_fields(
        task("completed", stop_reason="completed", identifier="task_2"), parent_id="task_1", depth=1, title="Read it"
    )
    assert renderer.event(TaskUpdate(task=done)).startswith("  ↳ Read it: ✓ task complete · 3 turns")


def test_the_status_says_how_much_of_a_request_is_read() -> None:
    renderer = transcript()
    renderer.event(TaskUpdate(task=task("thinking")))
    reading = PromptReading(conversation_id="conversation_1", task_id="task_1", processed=1200, total=4000)
    renderer.show_reading(reading)
    assert renderer.status() == "reading 1,200 of 4,000 tokens"
    renderer.show_reading(msgspec.structs.replace(reading, processed=4000))
    assert renderer.status() == "thinking…"
