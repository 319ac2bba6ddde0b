"""The rules by which agents of a conversation take turns."""

from errand.protocol.conversations import TurnRule, TurnTaking
from errand.text.translation import tr, uncapitalised

TURN_RULES: dict[TurnRule, tuple[str, str]] = {
    "addressed": (
        tr("By name"),
        tr(
            "The agent mentioned with @ answers, otherwise the last one. An agent that mentions another "
            "hands over to it."
        ),
    ),
    "round_robin": (tr("Round robin"), tr("After your message, each agent replies once, in the order they joined.")),
    "moderator": (tr("Moderator"), tr("One agent replies first and after every other agent, and picks who is next.")),
}
"""The name of each rule, and what it does."""


def turn_rule_label(turns: TurnTaking, spelled_out: int) -> str:
    """Return the rule and the number of replies since the last message of a person; empty for the default rule."""
    if turns.rule == "addressed":
        return ""
    used = tr("{number} of {limit}").format(number=min(spelled_out, turns.limit), limit=turns.limit)
    return f"{uncapitalised(TURN_RULES[turns.rule][0])} · {used}"
