"""Asks: what a person must settle. Durable; the first answer wins."""

from typing import Literal

from app.protocol.struct import Moment, Wire

AskKind = Literal["question", "approval", "limit"]
AskStatus = Literal["waiting", "answered", "cancelled"]
Remember = Literal["once", "conversation", "workspace"]
Risk = Literal["low", "medium", "high"]


class Approval(Wire, frozen=True, kw_only=True):
    """What would run, exactly.

    `rule` says why it is asked; `remembered` is the exact text a grant would hold, null where none can be.
    """

    tool: str
    call_id: str
    text: str
    rule: str
    risk: Risk
    command: str | None = None
    working_dir: str | None = None
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    preview: str = ""
    remembered: str | None = None


class Ask(Wire, frozen=True, kw_only=True):
    """`text` is the question. `choices` may be empty (free text). Once answered it says by whom."""

    id: str
    task_id: str
    conversation_id: str
    kind: AskKind
    text: str
    created_at: Moment
    status: AskStatus = "waiting"
    choices: tuple[str, ...] = ()
    approval: Approval | None = None
    answer: str | None = None
    allowed: bool | None = None
    remember: Remember = "once"
    answered_by: str | None = None
    answered_at: Moment | None = None


class AskAnswerParams(Wire, frozen=True, kw_only=True):
    """Settle an ask.

    A question takes `text`; an approval takes `allow`, `remember` and, when denied, `text` as the reason; a limit
    takes `allow` (go on, with as much again).
    """

    ask_id: str
    text: str = ""
    allow: bool | None = None
    remember: Remember = "once"


class AskAnswerResult(Wire, frozen=True, kw_only=True):
    """`won` is false if another answer came first; `ask` then carries that one."""

    won: bool
    ask: Ask


class AskListParams(Wire, frozen=True, kw_only=True):
    """`task_ids` null asks of all tasks."""

    waiting: bool = True
    task_id: str | None = None
    task_ids: tuple[str, ...] | None = None


class AskListResult(Wire, frozen=True, kw_only=True):
    asks: tuple[Ask, ...]
