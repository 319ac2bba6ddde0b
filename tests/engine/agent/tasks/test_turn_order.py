"""The next speaker among several agents, as tables."""

import unicodedata
from datetime import UTC, datetime

import pytest

from errand.engine.agent.history.participants import SpeakingRound, first_speaker, mentioned, next_speaker
from errand.protocol.agents import Agent
from errand.protocol.conversations import TurnRule, TurnTaking


def agent(name: str) -> Agent:
    return Agent(
        id=name.lower(),
        conversation_id="c",
        personality_id="assistant",
        name=name,
        head_id="n",
        version=1,
        created_at=datetime.now(UTC),
    )


ANNA, CODER, CODER_2 = agent("Anna"), agent("Coder"), agent("Coder 2")
ALL = (ANNA, CODER, CODER_2)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("@Coder go", ["Coder"]),
        ("@coder 2, then @ANNA", ["Coder 2", "Anna"]),
        ("@Coder  2 go", ["Coder 2"]),
        ("(@Coder)", ["Coder"]),
        ("@Coder 2x", ["Coder"]),
        ("@Coders and @Annabel", []),
        ("write to a@coder.de, b.@anna", []),
        ("@Coder @Coder @Anna", ["Coder", "Anna"]),
        ("@@Coder", []),
        ("@Nobody @", []),
        ("", []),
    ],
)
def test_mentioned_agents_are_found_in_a_text(text: str, names: list[str]) -> None:
    assert [mention.name for mention in mentioned(text, ALL)] == names


def test_names_with_regex_characters_are_found() -> None:
    odd = agent("C++ (fast)*")
    assert mentioned("ask @c++ (fast)* please", (odd, ANNA)) == (odd,)
    assert mentioned("@Anna", ()) == ()


@pytest.mark.parametrize("name", ["Größe Straße", "李 明", "🦊 Fox", "İstanbul", "Jose\u0301", "Dr. Who?", "[x]:"])
def test_names_in_any_script_are_found(name: str) -> None:
    named_agent = agent(name)
    for written in (name, name.upper(), unicodedata.normalize("NFC", name), unicodedata.normalize("NFD", name)):
        assert mentioned(f"@{written}, you", (ANNA, named_agent)) == (named_agent,), written


@pytest.mark.parametrize(
    ("rule", "message", "spoke_last", "speaks"),
    [
        ("addressed", "hello", None, ANNA),
        ("addressed", "hello", "coder", CODER),
        ("addressed", "hello", "gone", ANNA),
        ("addressed", "@Coder 2 hello", "coder", CODER_2),
        ("round_robin", "hello", None, ANNA),
        ("round_robin", "hello", "coder 2", ANNA),
        ("round_robin", "hello", "anna", CODER),
        ("round_robin", "hello", "gone", ANNA),
        ("round_robin", "@Coder hello", "anna", CODER),
        ("moderator", "hello", "anna", CODER),
        ("moderator", "@Anna hello", "coder", ANNA),
    ],
)
def test_first_speaker_follows_the_rule(rule: TurnRule, message: str, spoke_last: str | None, speaks: Agent) -> None:
    assert first_speaker(TurnTaking(rule=rule, moderator_id="coder"), ALL, message, spoke_last) == speaks


@pytest.mark.parametrize(
    ("rule", "message", "speakers", "reply", "speaks"),
    [
        ("addressed", "hello", ["anna"], "done", None),
        ("addressed", "hello", ["anna"], "over to @Coder", CODER),
        ("addressed", "hello", ["anna"], "I, @Anna, am done", None),
        ("addressed", "@Anna @Coder hello", ["anna"], "done", CODER),
        ("addressed", "@Anna @Coder hello", ["anna", "coder"], "done", None),
        ("addressed", "@Anna @Coder hello", ["anna"], "first @Coder 2", CODER_2),
        ("addressed", "@Anna @Coder hello", ["anna", "coder 2"], "done", CODER),
        ("addressed", "hello", ["anna", "coder"], "@Anna again", ANNA),
        ("round_robin", "hello", ["anna"], "@Coder 2", CODER),
        ("round_robin", "hello", ["anna", "coder"], "", CODER_2),
        ("round_robin", "hello", ["anna", "coder", "coder 2"], "", None),
        ("round_robin", "go on", ["coder 2"], "", ANNA),
        ("round_robin", "go on", ["coder 2", "anna"], "", CODER),
        ("round_robin", "@Coder @Anna", ["coder"], "", ANNA),
        ("round_robin", "@Coder", ["coder"], "", None),
        ("moderator", "hello", ["coder"], "@Anna, please", ANNA),
        ("moderator", "hello", ["coder", "anna"], "@Coder 2", CODER),
        ("moderator", "hello", ["coder", "anna", "coder"], "that is all", None),
        ("moderator", "hello", ["coder"], "I say @Coder", None),
    ],
)
def test_next_speaker_follows_the_rule(
    rule: TurnRule, message: str, speakers: list[str], reply: str, speaks: Agent | None
) -> None:
    taking = TurnTaking(rule=rule, moderator_id="coder")
    assert next_speaker(taking, ALL, SpeakingRound(message, tuple(speakers), reply)) == speaks


def test_round_without_its_moderator_follows_addressing_and_a_single_agent_has_no_successor() -> None:
    rule = TurnTaking(rule="moderator", moderator_id="gone")
    assert first_speaker(rule, ALL, "hello", None) == ANNA
    assert next_speaker(rule, ALL, SpeakingRound("hello", ("anna",), "@Coder")) == CODER
    for alone in (TurnTaking(), TurnTaking(rule="round_robin"), TurnTaking(rule="moderator", moderator_id="anna")):
        assert next_speaker(alone, (ANNA,), SpeakingRound("@Anna @Coder", ("anna",), "@Coder @Anna")) is None
