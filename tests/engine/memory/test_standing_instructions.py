"""Which sentences of a message are meant for later messages too."""

import pytest

from errand.engine.memory.standing_instructions import standing_instructions


@pytest.mark.parametrize(
    "sentence",
    [
        "Always confirm dates when I ask about deadlines.",
        "Please never use tabs in this repo.",
        "From now on, answer in French.",
        "And don't ever push to main",
        "When I ask about deadlines, always confirm the dates.",
        "I want you to always run the linter first.",
        "You should never touch the generated files!",
        "We never deploy on Fridays.",
        "Make sure to always keep the old name as an alias.",
        "Run the tests every time you change a file.",
        "Antworte immer auf Deutsch.",
        "Ab jetzt bitte kürzere Antworten.",
        "Du sollst nie direkt auf main pushen.",
        "Wir verwenden immer vier Leerzeichen.",
        "Bitte frag mich nie nach dem Kennwort.",
    ],
)
def test_an_instruction_for_later_is_found_beside_others(sentence: str) -> None:
    message = f"The build is red since Monday. {sentence}\nFix it, please."
    assert standing_instructions(message) == [sentence]


@pytest.mark.parametrize(
    "message",
    [
        "Fix the failing test in round.py.",
        "Never mind, I found it myself.",
        "Should I always use a lock here?",
        "I always forget the flag for that.",
        "It never works on the second try.",
        "In future they will move the server.",
        "Whenever I start it, it crashes.",
        "Check whether the queue is never empty.",
        "Use a shorter name whenever possible.",
        "Das hat noch nie funktioniert.",
        "Künftig wird der Server umgezogen.",
        "> Always use tabs, says the style guide.",
        "```\nAlways use tabs in this repo.\n```",
        "Always",
        "",
    ],
)
def test_what_is_said_for_now_is_no_instruction_for_later(message: str) -> None:
    assert standing_instructions(message) == []


def test_a_list_of_rules_gives_three_and_each_once() -> None:
    rules = [f"Always close valve {name} first." for name in ("A", "B", "C", "D")]
    assert standing_instructions("\n".join(f"- {rule}" for rule in (rules[0], *rules))) == rules[:3]
