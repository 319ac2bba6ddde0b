"""What an ask asks and offers, in the person's language: the sentences that an engine writes are written anew here."""

from errand.client.safe_text import plain
from errand.notice_text import limit_text
from errand.protocol.asks import RUN_AGAIN, SKIP, STOP, Ask
from errand.translation import tr

_UNKNOWN = tr(
    "The engine was killed while this was under way. It may have taken effect in part, in whole, or not at all: "
    "look first, then choose."
)
_CHOICES = {
    RUN_AGAIN: tr("Run it again"),
    SKIP: tr("Skip it"),
    STOP: tr("Stop the task"),
    "Go on with as much again": tr("Go on with as much again"),
    "Go on": tr("Go on"),
    "Stop here": tr("Stop here"),
}
"""The choices of an engine that are no words of an agent."""


def asked_text(ask: Ask) -> str:
    """The question of a person or agent as it is; a limit and an unknown outcome as a sentence of this client."""
    if ask.limit is not None:
        return f"{limit_text(ask.limit.kind, ask.limit.limit)} {tr('Go on?')}"
    return _UNKNOWN if ask.unknown is not None else plain(ask.text)


def choice_text(ask: Ask, choice: str) -> str:
    """The label of a choice; what answers with it is the choice itself."""
    return plain(choice) if ask.kind == "question" else _CHOICES.get(choice, plain(choice))
