"""Why an attempt at a reply gave none: internal to the models, which show it as a `Retry` or as a failed message."""

from dataclasses import dataclass

from app.engine.messages import AssistantMessage

ABORTED = "Request was aborted"


@dataclass(frozen=True, slots=True)
class Failure:
    """`text` says what happened and what to do; `short` is the same in a few words, for "retrying in 3 s: …".

    `may_pass` says that another attempt may help; `retry_after_s` is the wait the provider asked for. A limit
    (`is_limit`) passes with time alone. `is_too_long` is about what was sent: the model cannot read as much.
    `lacks_tools`: it cannot call tools; `refuses_temperature`: it takes none, or not this one. `passes_elsewhere`:
    another provider may take the same request.
    """

    text: str
    short: str
    may_pass: bool
    retry_after_s: float | None = None
    is_limit: bool = False
    is_too_long: bool = False
    lacks_tools: bool = False
    passes_elsewhere: bool = True
    refuses_temperature: bool = False


@dataclass(frozen=True, slots=True)
class Failed:
    """The last event of an attempt that gave no whole reply. `partial` is the content so far."""

    failure: Failure
    partial: AssistantMessage


class Refused(Exception):
    """Raised inside an attempt that cannot go on."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.text)
        self.failure = failure


def cut(title: str) -> Failure:
    text = f"The connection to {title} broke off in the middle of the reply. What came is kept; try again."
    return Failure(text, "connection broke off", may_pass=True)


def stalled(title: str, limit_s: float) -> Failure:
    text = f"{title} sent nothing for {limit_s:g} s. It may be overloaded; try again."
    return Failure(text, "no answer", may_pass=True)
