"""The agents of a conversation: which of them is selected, and for whom a message is."""

from datetime import UTC, datetime, timedelta

from errand.client.conversation.agents import AgentListeners, ConversationAgents
from errand.protocol.agents import Agent
from errand.protocol.conversations import TurnTaking

_MORNING = datetime(2026, 1, 1, 9, tzinfo=UTC)


def _agent(name: str, minutes: int, *, version: int = 1, called_by: str | None = None) -> Agent:
    return Agent(
        id=name.casefold(),
        conversation_id="c",
        personality_id="p",
        name=name,
        head_id="n",
        version=version,
        created_at=_MORNING + timedelta(minutes=minutes),
        called_by=called_by,
    )


def _coder_and_tester(events: list[str]) -> ConversationAgents:
    agents = ConversationAgents(AgentListeners(lambda: events.append("changed"), lambda: events.append("selected")))
    agents.put_all((_agent("Tester", 1), _agent("Coder", 0)))
    events.clear()
    return agents


def test_the_oldest_agent_is_selected_until_another_one_is_chosen() -> None:
    events: list[str] = []
    agents = _coder_and_tester(events)
    assert (agents.shown, agents.chosen_id) == (_agent("Coder", 0), None)
    agents.show_agent("tester")
    assert (agents.shown, agents.chosen_id, events) == (_agent("Tester", 1), "tester", ["selected", "changed"])
    agents.drop("tester")
    assert (agents.shown, agents.chosen_id) == (_agent("Coder", 0), None)


def test_an_older_version_of_an_agent_changes_nothing() -> None:
    events: list[str] = []
    agents = _coder_and_tester(events)
    newer = _agent("Coder", 0, version=2)
    assert agents.put(newer)
    assert not agents.put(_agent("Coder", 0))
    assert (agents.get("coder"), events) == (newer, ["changed"])


def test_a_sub_agent_is_listed_only_while_it_is_selected() -> None:
    agents = _coder_and_tester([])
    agents.put(_agent("Helper", 2, called_by="t"))
    assert [agent.name for agent in agents.all] == ["Coder", "Tester"]
    agents.show_agent("helper")
    assert [agent.name for agent in agents.all] == ["Coder", "Tester", "Helper"]


def test_a_message_is_for_the_agents_that_it_names() -> None:
    agents = _coder_and_tester([])
    agents.turns = TurnTaking(rule="addressed")
    assert agents.named_in("Ask @tester about it") == {"tester"}
    assert agents.is_for_another("Ask @tester about it", spoke_last="coder")
    assert not agents.is_for_another("Go on, @Coder", spoke_last="tester")
    assert agents.is_for_another("Go on", spoke_last="tester")
