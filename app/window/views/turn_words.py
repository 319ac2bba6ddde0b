"""How agents take turns, in words."""

from app.protocol.conversations import TurnRule, TurnTaking

RULES: dict[TurnRule, tuple[str, str]] = {
    "addressed": (
        "By name",
        "Whom a message names with @ answers, else who spoke last. An agent that names another hands over to it.",
    ),
    "round_robin": ("Round robin", "After your message each speaks once, in the order in which they joined."),
    "moderator": ("A moderator", "One agent speaks first and after each of the others; whom it names speaks next."),
}


def turns_in_short(turns: TurnTaking, spoken: int) -> str:
    """The rule and how many replies there were since a person's last word; nothing for the usual rule."""
    if turns.rule == "addressed":
        return ""
    return f"{RULES[turns.rule][0].lower()} · {min(spoken, turns.limit)} of {turns.limit}"
