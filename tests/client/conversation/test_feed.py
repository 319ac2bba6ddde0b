"""The items that events and deltas of a conversation add."""

import msgspec

from errand.client.conversation.feed import ConversationFeed
from errand.client.conversation.items import (
    CallItem,
    MessageItem,
    NoticeItem,
    PieceItem,
    ResultItem,
    SpeakerItem,
    SubAgentItem,
    TaskEndItem,
    TextItem,
)
from errand.protocol.agents import Agent
from errand.protocol.blocks import NoticeBlock, TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock
from errand.protocol.events import AgentUpdate, AskUpdate, TaskMessage, TaskUpdate, TextDelta
from errand.protocol.notices import TaskFailed
from errand.protocol.tasks.task import replace_fields
from tests.support.protocol_events import START, approval, node, task


def feed_of(*, streams: bool = True, thinking: bool = False) -> ConversationFeed:
    return ConversationFeed(streams=streams, thinking=thinking, names_all=False)


def delta(text: str, offset: int, block: int = 0) -> TextDelta:
    return TextDelta(
        conversation_id="conversation_1",
        task_id="task_1",
        node_id="node_1",
        block=block,
        kind="text",
        offset=offset,
        text=text,
    )


def test_a_streamed_text_comes_in_pieces_and_its_node_adds_the_rest() -> None:
    feed = feed_of()
    assert feed.delta(delta("Hello ", 0)) == [PieceItem("text", "Hello ", is_first=True)]
    assert feed.delta(delta("wor", 6)) == [PieceItem("text", "wor", is_first=False)]
    assert feed.is_answering
    finished = TaskMessage(node=node("assistant", TextBlock(text="Hello world")))
    assert feed.event(finished) == [TextItem("text", "Hello world", "ld")]
    assert feed.event(finished) == [], "a repeated event adds nothing"
    assert not feed.is_answering


def test_a_text_whose_pieces_were_missed_or_differ_comes_whole() -> None:
    feed = feed_of()
    assert feed.delta(delta("lost before", 6)) == []
    assert feed.event(TaskMessage(node=node("assistant", TextBlock(text="Hello")))) == [TextItem("text", "Hello", None)]


def test_a_reply_that_restarts_voids_its_later_blocks() -> None:
    feed = feed_of()
    feed.delta(delta("One", 0))
    feed.delta(delta("Two", 0, block=1))
    assert feed.delta(delta("Uno", 0)) == [PieceItem("text", "Uno", is_first=True, restarts=True)]
    assert feed.delta(delta("Due", 0, block=1)) == [PieceItem("text", "Due", is_first=True)]


def test_thoughts_are_items_only_if_they_are_asked_for() -> None:
    thought = TaskMessage(node=node("assistant", ThinkingBlock(text="hm"), TextBlock(text="Three.")))
    assert feed_of().event(thought) == [TextItem("text", "Three.", None)]
    assert feed_of(thinking=True).event(thought) == [
        TextItem("thinking", "hm", None),
        TextItem("text", "Three.", None),
    ]


def test_a_call_runs_until_its_result_and_a_previewed_change_is_marked() -> None:
    feed = feed_of()
    call = ToolCallBlock(call_id="call_1", tool="shell", arguments={})
    result = ToolResultBlock(call_id="call_1", tool="shell", text="ok", is_error=False)
    asked = approval()
    assert asked.approval is not None
    previewed = msgspec.structs.replace(asked.approval, preview="-old\n+new\n")
    feed.event(AskUpdate(ask=msgspec.structs.replace(asked, approval=previewed)))
    assert feed.event(TaskMessage(node=node("assistant", call))) == [CallItem(call)]
    assert feed.running_call == call
    answered = TaskMessage(node=node("tool_result", result, identifier="node_2"))
    assert feed.event(answered) == [ResultItem(call, result, is_previewed=True, is_stopped=False)]
    assert feed.running_call is None


def test_what_was_typed_here_is_no_item_but_the_same_text_from_elsewhere_is() -> None:
    feed = feed_of()
    feed.mark_typed("Go on. ")
    typed = node("user", TextBlock(text="Go on."))
    assert feed.event(TaskMessage(node=typed)) == []
    again = msgspec.structs.replace(typed, id="node_2")
    assert feed.event(TaskMessage(node=again)) == [MessageItem(again, "Go on.", ())]


def test_an_error_and_a_summary_come_once() -> None:
    feed = feed_of()
    failure = NoticeBlock(kind="error", data=TaskFailed(text="no key", cause="internal"))
    (notice,) = feed.event(TaskMessage(node=node("system", failure)))
    assert isinstance(notice, NoticeItem)
    feed.event(TaskMessage(node=node("assistant", TextBlock(text="All is done."), identifier="node_2")))
    ended = task("error", stop_reason="error", error="no key", summary="All is done.")
    assert feed.event(TaskUpdate(task=ended)) == [TaskEndItem(ended, "", "")]


def test_speakers_are_named_if_there_are_several() -> None:
    feed = feed_of()
    reply = node("assistant", TextBlock(text="Three."))
    for agent_id, name in (("agent_1", "Anna"), ("agent_2", "Ben")):
        agent = Agent(
            id=agent_id,
            conversation_id="conversation_1",
            personality_id="assistant",
            name=name,
            head_id=None,
            version=1,
            created_at=START,
        )
        assert feed.event(AgentUpdate(agent=agent)) == []
    assert feed.event(TaskMessage(node=reply))[0] == SpeakerItem("Anna", reply)
    more = msgspec.structs.replace(reply, id="node_2")
    assert feed.event(TaskMessage(node=more)) == [TextItem("text", "Three.", None)]


def test_a_sub_agent_begins_and_ends_and_its_messages_are_on_a_branch_of_its_own() -> None:
    feed = feed_of()
    feed.event(TaskUpdate(task=task()))
    begun = replace_fields(task(identifier="task_2"), parent_id="task_1")
    assert feed.event(TaskUpdate(task=begun)) == [SubAgentItem(begun)]
    assert feed.event(TaskUpdate(task=begun)) == []
    assert feed.sub_agents_at_work == 1
    reply = msgspec.structs.replace(node("assistant", TextBlock(text="Part.")), task_id="task_2")
    assert feed.event(TaskMessage(node=reply)) == []
    ended = replace_fields(begun, status="completed", ended_at=START)
    assert feed.event(TaskUpdate(task=ended)) == [SubAgentItem(ended)]
    assert feed.sub_agents_at_work == 0
