"""The answers of an ask by number: what a digit chooses on its card, and in the message field with Enter."""

from errand.client.safe_text import plain
from errand.protocol.asks import Ask
from errand.text.translation import tr

MAX_CHOICES = 9

ALLOW_ONCE, ALWAYS_ALLOW, DENY, DENY_WITH_REASON = (
    tr("Allow once"),
    tr("Always allow…"),
    tr("Deny"),
    tr("Deny with reason…"),
)
CONTINUE, STOP = tr("Continue"), tr("Stop")


def choice_names(ask: Ask) -> tuple[str, ...]:
    """Return the names of the buttons, in the order of their digits.

    Empty for a question with an answer that begins with a digit: a number would mean two things.
    """
    match ask.kind:
        case "approval":
            has_offers = ask.approval is not None and bool(ask.approval.offers)
            names = (ALLOW_ONCE, ALWAYS_ALLOW, DENY, DENY_WITH_REASON)
            return names if has_offers else tuple(name for name in names if name != ALWAYS_ALLOW)
        case "limit":
            return (CONTINUE, STOP)
        case "question" | "unknown":
            names = tuple(plain(choice) for choice in ask.choices)
            return () if any(name.strip()[:1].isdigit() for name in names) else names[:MAX_CHOICES]
