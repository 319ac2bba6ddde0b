"""How one agent reads the others."""

from datetime import UTC, datetime

from errand.engine.agent.history.conversion import messages_of
from errand.engine.agent.history.participants import Participants
from errand.engine.core.messages import AssistantMessage, Text, ToolResultMessage, user_text
from errand.engine.storage.records.agents import ASSISTANT
from errand.protocol.agents import Agent
from errand.protocol.blocks import Block, NoticeBlock, TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock
from errand.protocol.conversations import FormerAgent, Node, NodeStatus, Role


def agent(name: str, beside: str | None = None) -> Agent:
    return Agent(
        id=name.lower(),
        conversation_id="c",
        personality_id="assistant",
        name=name,
        head_id="n",
        version=1,
        created_at=datetime.now(UTC),
        beside=beside,
    )


def node(role: Role, author: str, *blocks: Block, status: NodeStatus = "complete") -> Node:
    return Node(
        id="n",
        conversation_id="c",
        parent_id=None,
        role=role,
        author=author,
        blocks=blocks,
        status=status,
        created_at=datetime.now(UTC),
    )


def call(tool: str, **arguments: str) -> ToolCallBlock:
    return ToolCallBlock(call_id="1", tool=tool, arguments={**arguments})


def result(text: str, summary: str = "") -> Node:
    return node(
        "tool_result", "shell", ToolResultBlock(call_id="1", tool="shell", text=text, is_error=False, summary=summary)
    )


ANNA, CODER = agent("Anna"), agent("Coder")
BRANCH = (
    node("user", "user", TextBlock(text="build it")),
    node("assistant", "coder", ThinkingBlock(text="hm"), TextBlock(text="I build."), call("shell", command="make")),
    node("system", "engine", NoticeBlock(kind="info", text="a remark")),
    result("ok\n" * 200, "exit 0"),
    node("assistant", "coder", call("task_complete", summary="Built, @Anna.")),
    result("", "done"),
    node("assistant", "anna", TextBlock(text="I look."), call("shell", command="ls")),
    result("a.out"),
    node("assistant", "coder", TextBlock(text="half"), status="failed"),
    node("assistant", "coder", TextBlock(text="cut"), status="cut"),
)


def test_replies_of_other_agents_carry_their_names_and_own_replies_are_unchanged() -> None:
    messages = messages_of(Participants(ANNA, (ANNA, CODER), ()).as_messages(BRANCH))
    assert messages[:3] == (
        user_text("build it"),
        user_text('[Coder]: I build.\n(used shell {"command":"make"}: exit 0)'),
        user_text("[Coder]: Built, @Anna."),
    )
    own, result_message, cut = messages[3:]
    assert isinstance(own, AssistantMessage) and own.text == "I look."
    assert result_message == ToolResultMessage("1", "shell", (Text("a.out"),))
    assert cut == user_text("[Coder]: cut")


def test_converted_prefix_of_a_branch_does_not_change_as_it_grows() -> None:
    company = Participants(ANNA, (ANNA, CODER), ())
    all_messages = messages_of(company.as_messages(BRANCH))
    for length in (1, 4, 6, 8):
        part = messages_of(company.as_messages(BRANCH[:length]))
        assert all_messages[: len(part)] == part


def test_side_branch_agent_reads_replies_of_its_original_as_its_own() -> None:
    second = agent("Coder 2", beside="coder")
    third = agent("Coder 3", beside="coder")
    every = (ANNA, CODER, second, third)
    by_coder = node("assistant", "coder", TextBlock(text="mine"))
    by_second = node("assistant", "coder 2", TextBlock(text="mine too"))
    for reader in (CODER, second, third):
        assert Participants(reader, every, ()).as_messages((by_coder, by_second)) == (by_coder, by_second)
    assert [m.role for m in messages_of(Participants(ANNA, every, ()).as_messages((by_coder, by_second)))] == [
        "user",
        "user",
    ]


def test_deleted_agent_keeps_its_name_and_unknown_author_gets_none() -> None:
    nodes = (node("assistant", "old", TextBlock(text="hi")), node("assistant", "?", TextBlock(text="ho")))
    heard = Participants(ANNA, (ANNA,), (FormerAgent(id="old", name="Old"),)).as_messages(nodes)
    assert messages_of(heard) == (user_text("[Old]: hi"), AssistantMessage((Text("ho"),)))


def test_participants_are_introduced_only_if_there_are_several() -> None:
    assert Participants(ANNA, (ANNA, agent("Anna 2", beside="anna")), ()).with_introduction(ASSISTANT) == ASSISTANT
    prompt = (
        Participants(ANNA, (ANNA, CODER, agent("Coder 2", beside="coder")), ())
        .with_introduction(ASSISTANT)
        .system_prompt
    )
    assert "You are Anna." in prompt and "@Coder." in prompt and "Coder 2" not in prompt
    assert prompt.startswith("You are Errand")
