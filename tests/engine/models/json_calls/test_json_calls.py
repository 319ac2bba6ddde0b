"""Calls as JSON: what a small model is sent, what its reply becomes, and which calls the schema leaves out."""

from dataclasses import replace

import msgspec
import pytest

from errand.engine.core.messages import (
    AssistantMessage,
    ContextText,
    ModelMessage,
    Text,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    user_text,
)
from errand.engine.models.base import BlockDelta, ModelRequest, ReplyEnd, ReplyStart, ToolDefinition
from errand.engine.models.json_calls.parser import JsonCallParser
from errand.engine.models.json_calls.request import with_json_calls
from errand.engine.models.react.reply import TextToolsReply
from errand.protocol.base import JsonObject


def tool(name: str, *arguments: str) -> ToolDefinition:
    properties: JsonObject = {argument: {"type": "string"} for argument in arguments}
    parameters: JsonObject = {"type": "object", "properties": properties, "required": [*arguments]}
    return ToolDefinition(name, f"What {name} does.", parameters)


READ, BASH, ASK = tool("read", "path"), tool("bash", "command"), tool("ask_user", "question")
EDIT = tool("edit", "path", "old_string", "new_string")
DONE = tool("task_complete", "summary")


def request_with(
    *messages: ModelMessage, tools: tuple[ToolDefinition, ...] = (READ, EDIT, BASH, ASK, DONE)
) -> ModelRequest:
    return ModelRequest("local/small", "You are helpful.", (user_text("Do it."), *messages), tools)


def step(number: int, name: str, result: str, *, fails: bool = False, **arguments: str) -> tuple[ModelMessage, ...]:
    call = ToolCall(str(number), name, {**arguments})
    return (
        AssistantMessage((call,), "tool_use"),
        ToolResultMessage(str(number), name, (Text(result),), is_error=fails),
    )


def names_allowed(request: ModelRequest) -> set[str]:
    schema = with_json_calls(request).reply_schema
    assert schema is not None
    text = msgspec.json.encode(schema)
    calls = msgspec.json.decode(text)["anyOf"]
    return {call["properties"]["name"]["const"] for call in calls}


def reply_to(written: str, request: ModelRequest | None = None) -> AssistantMessage:
    decoder = TextToolsReply(request or request_with(), make_parser=JsonCallParser)
    partial = AssistantMessage(model="local/small")
    decoder.take(ReplyStart(partial))
    for piece in written:
        decoder.take(BlockDelta("text", 0, piece, partial))
    last = decoder.take(ReplyEnd(AssistantMessage((Text(written),), model="local/small")))[-1]
    assert isinstance(last, ReplyEnd)
    return last.message


def test_the_prompt_lists_the_tools_in_the_form_of_a_call_and_ends_with_an_answer() -> None:
    sent = with_json_calls(request_with())
    assert sent.tools == ()
    assert '- {"name": "read", "arguments": {"path": "…"}}: What read does.' in sent.system_prompt
    assert "task_complete" not in sent.system_prompt
    assert names_allowed(request_with()) == {"read", "edit", "bash", "ask_user", "answer"}


def test_examples_of_work_come_first_if_their_tools_are_offered() -> None:
    working, reading = (
        with_json_calls(request_with()).messages,
        with_json_calls(request_with(tools=(READ, DONE))).messages,
    )
    assert len(working) > len(reading) > 1
    assert '"edit"' in str(working) and '"edit"' not in str(reading)
    assert len(with_json_calls(request_with(tools=(DONE,))).messages) == 1


def test_a_small_model_reads_the_brief_form_of_what_the_engine_adds() -> None:
    message = UserMessage(
        (ContextText("All of it.", "environment", "Sunday."), ContextText("A fact.", "memory"), Text("Do it."))
    )
    request = replace(request_with(tools=(DONE,)), messages=(message,))
    sent = with_json_calls(request)
    assert sent.system_prompt.endswith("\n\nSunday.")
    assert sent.messages == (UserMessage((ContextText("A fact.", "memory"), Text("Do it."))),)
    later = UserMessage((ContextText("Another day.", "environment", "Monday."), Text("Go on.")))
    assert with_json_calls(replace(request, messages=(message, AssistantMessage((Text("Done."),)), later))).messages[
        -1
    ] == (UserMessage((Text("Monday."), Text("Go on."))))
    unchanged = UserMessage((ContextText("A file is new.", "environment", ""), Text("Do it.")))
    assert with_json_calls(replace(request, messages=(unchanged,))).messages == (user_text("Do it."),)


def test_earlier_replies_are_calls_and_results_stand_in_the_next_message() -> None:
    request = request_with(
        *step(1, "read", "plum", path="a.txt"),
        AssistantMessage((Text("It is plum."),)),
        user_text("Thanks."),
        tools=(DONE,),
    )
    roles = [(message.role, str(message.content[0])) for message in with_json_calls(request).messages]
    assert [role for role, _ in roles] == ["user", "assistant", "user", "assistant", "user"]
    assert '{"name": "read", "arguments": {"path": "a.txt"}}' in roles[1][1]
    assert "plum" in roles[2][1] and "tool_response" in roles[2][1]
    assert '{"name": "answer", "arguments": {"text": "It is plum."}}' in roles[3][1]


def test_a_call_becomes_a_call() -> None:
    (call,) = reply_to('{"name": "read", "arguments": {"path": "a.txt"}}').tool_calls
    assert (call.name, call.arguments) == ("read", {"path": "a.txt"})


def test_an_answer_is_shown_and_ends_the_task() -> None:
    message = reply_to('{"name": "answer", "arguments": {"text": "It is plum."}}')
    assert message.text == "It is plum."
    assert [(call.name, call.arguments) for call in message.tool_calls] == [
        ("task_complete", {"summary": "It is plum."})
    ]


def test_an_answer_in_a_chat_is_text_alone() -> None:
    message = reply_to('{"name": "answer", "arguments": {"text": "Hello."}}', request_with(tools=(READ,)))
    assert (message.text, message.tool_calls) == ("Hello.", ())


@pytest.mark.parametrize("written", ['{"name": "read", "argum', '{"path": "a.txt"}'])
def test_what_is_no_whole_call_is_told_to_the_model(written: str) -> None:
    assert [call.name for call in reply_to(written).tool_calls] == ["unreadable_call"]


def test_text_of_a_server_that_does_not_hold_to_the_schema_is_text() -> None:
    assert reply_to("Hello.").text == "Hello."


def test_a_call_that_was_made_twice_with_the_same_result_is_not_made_again() -> None:
    twice = (*step(1, "bash", "42", command="./run"), *step(2, "bash", "42", command="./run"))
    assert "bash" not in names_allowed(request_with(*twice))
    assert "bash" in names_allowed(request_with(*twice[:2]))


def test_a_call_with_the_result_of_an_earlier_one_is_not_made_again_whatever_came_between() -> None:
    looked = (*step(1, "bash", "42", command="./run"), *step(2, "read", "text", path="a.txt"))
    assert "bash" not in names_allowed(request_with(*looked, *step(3, "bash", "42", command="./run")))
    assert "bash" in names_allowed(request_with(*looked, *step(3, "bash", "43", command="./run")))


def test_after_three_repetitions_with_nothing_new_between_only_the_answer_is_left() -> None:
    looked = (*step(1, "bash", "42", command="./run"), *step(2, "read", "text", path="a.txt"))
    twice = (*looked, *step(3, "bash", "42", command="./run"), *step(4, "read", "text", path="a.txt"))
    assert names_allowed(request_with(*twice)) > {"answer"}
    failed = step(5, "edit", "not found", fails=True, path="a", old_string="x", new_string="y")
    assert names_allowed(request_with(*twice, *failed, *step(6, "bash", "42", command="./run"))) == {"answer"}
    changed = step(5, "edit", "Changed a", path="a", old_string="x", new_string="y")
    assert names_allowed(request_with(*twice, *changed, *step(6, "bash", "42", command="./run"))) > {"answer"}


def test_a_wait_is_no_repetition() -> None:
    call, result = step(1, "bash", "Still starting.", command="sleep 5; cat log")
    assert isinstance(result, ToolResultMessage)
    waited = (call, replace(result, marks=("waited",)))
    assert "bash" in names_allowed(request_with(*waited * 2))
    looked = (*step(1, "read", "text", path="a"), *step(2, "read", "text", path="a"))
    assert names_allowed(request_with(*(*waited, *looked) * 3)) == {"answer"}
    failed = (call, replace(result, marks=("waited",), is_error=True))
    assert "bash" not in names_allowed(request_with(*failed * 2))


def test_a_reply_is_possible_when_the_only_tool_has_failed_twice_in_the_same_way() -> None:
    failed = (
        *step(1, "read", "no file", fails=True, path="a"),
        *step(2, "read", "no file", fails=True, path="a"),
    )
    assert names_allowed(request_with(*failed, tools=(READ, DONE))) == {"answer"}


def test_a_person_is_asked_one_question_for_a_message() -> None:
    asked = step(1, "ask_user", "8047", question="Which?")
    assert "ask_user" not in names_allowed(request_with(*asked, *step(2, "read", "text", path="a.txt")))
    assert "ask_user" in names_allowed(request_with(*asked, user_text("Now the other.")))


def test_after_a_failed_call_the_model_tries_again_before_it_answers() -> None:
    failed = step(1, "edit", "not found", fails=True, path="a", old_string="x", new_string="y")
    assert "answer" not in names_allowed(request_with(*failed))
    mended = step(2, "edit", "Changed a", path="a", old_string="z", new_string="y")
    assert "answer" in names_allowed(request_with(*failed, *mended))
    assert "answer" in names_allowed(request_with(*failed, *step(2, "bash", "done", command="sed -i s/x/y/ a")))


def test_a_tool_that_failed_twice_gives_way_to_others_until_one_succeeds() -> None:
    failed = step(1, "edit", "not found", fails=True, path="a", old_string="x", new_string="y")
    looked = step(2, "bash", "error", fails=True, command="./run")
    again = step(3, "edit", "the same", fails=True, path="a", old_string="z", new_string="z")
    allowed = names_allowed(request_with(*failed, *looked, *again))
    assert "edit" not in allowed and "bash" in allowed
    assert "edit" in names_allowed(request_with(*failed, *step(2, "read", "text", path="a"), *again))


def test_a_question_that_nobody_answered_is_no_way_out_of_a_failed_call() -> None:
    failed = step(1, "read", "There is no file.", fails=True, path="a")
    asked = step(2, "ask_user", "Not answered: nobody is there to ask.", fails=True, question="Which?")
    assert names_allowed(request_with(*failed, *asked)) == {"read", "edit", "bash"}
    answered = step(2, "ask_user", "Leave it.", question="Which?")
    assert "answer" in names_allowed(request_with(*failed, *answered))


def test_the_person_speaks_right_after_an_answer() -> None:
    done = step(1, "task_complete", "The task is complete.", summary="I need the postcode.")
    messages = with_json_calls(request_with(*done, user_text("It is 8047."), tools=(DONE,))).messages
    assert [message.content for message in messages[1:]] == [
        (Text('{"name": "answer", "arguments": {"text": "I need the postcode."}}'),),
        (Text("It is 8047."),),
    ]


def test_after_a_question_that_nobody_answered_it_may_say_what_is_missing() -> None:
    asked = step(1, "ask_user", "Not answered: nobody is there to ask.", fails=True, question="Which?")
    assert "answer" in names_allowed(request_with(*asked))


def test_after_some_failed_calls_it_may_say_that_it_cannot() -> None:
    failures = [step(number, "bash", f"error {number}", fails=True, command=str(number)) for number in range(5)]
    assert "answer" in names_allowed(request_with(*(message for pair in failures for message in pair)))


def test_a_task_whose_answer_follows_a_schema_ends_by_its_own_completion() -> None:
    completion = tool("task_complete", "summary", "answer")
    request = request_with(tools=(READ, completion))
    assert names_allowed(request) == {"read", "task_complete"}
    (call,) = reply_to('{"name": "task_complete", "arguments": {"summary": "s", "answer": "a"}}', request).tool_calls
    assert (call.name, call.arguments) == ("task_complete", {"summary": "s", "answer": "a"})


def test_results_of_calls_with_the_same_id_stay_with_their_calls() -> None:
    request = request_with(*step(0, "read", "first", path="a"), *step(0, "read", "second", path="b"), tools=(DONE,))
    texts = [str(message.content[0]) for message in with_json_calls(request).messages]
    assert '"a"' in texts[1] and "first" in texts[2] and '"b"' in texts[3] and "second" in texts[4]


def test_an_unreadable_call_is_answered_with_the_form() -> None:
    call = ToolCall("1", "unreadable_call", {}, invalid='{"name": "read", "arg')
    failed = ToolResultMessage("1", "unreadable_call", (Text("There is no such tool."),), is_error=True)
    last = with_json_calls(request_with(AssistantMessage((call,)), failed)).messages[-1]
    assert "Write one call as JSON" in str(last.content)


@pytest.mark.parametrize(("chosen", "sent"), [(None, 0.0), (0.7, 0.7), (0.0, 0.0)])
def test_a_small_model_is_sampled_without_chance_unless_a_temperature_was_chosen(
    chosen: float | None, sent: float
) -> None:
    request = request_with()
    chosen_request = replace(request, options=replace(request.options, temperature=chosen))
    assert with_json_calls(chosen_request).options.temperature == sent
