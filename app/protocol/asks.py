"""Asks and grants."""

from typing import Literal

from app.protocol.base import Method, Timestamp, Wire
from app.protocol.tasks import LimitKind

GrantScope = Literal["conversation", "workspace"]

AskKind = Literal["question", "approval", "limit", "unknown"]
AskStatus = Literal["waiting", "answered", "cancelled"]
Remember = Literal["once", "conversation", "workspace"]
Risk = Literal["low", "medium", "high"]

# The choices of an ask about a call whose outcome is not known; its answer is one of these texts.
RUN_AGAIN, SKIP, STOP = "Run it again", "Skip it", "Stop the task"


class GrantedCall(Wire, frozen=True, kw_only=True):
    """What a grant allows a tool: nothing but this operation, on this path, or this very command in this folder.

    Paths are absolute, with links resolved.
    """

    operation: str
    path: str | None = None
    command: str | None = None
    working_dir: str | None = None


class Grant(Wire, frozen=True, kw_only=True):
    """`call` is what is allowed, null for an old grant that holds no longer; `exact` says it in words.

    `scope_id` is the conversation's id or the workspace's path.
    """

    id: str
    tool: str
    exact: str
    call: GrantedCall | None = None
    scope: GrantScope
    scope_id: str
    created_at: Timestamp
    created_by: str
    ask_id: str
    revoked_at: Timestamp | None = None
    last_used_at: Timestamp | None = None
    owner: str = "local"


class GrantListParams(Wire, frozen=True, kw_only=True):
    revoked: bool = False


class GrantListResult(Wire, frozen=True, kw_only=True):
    grants: tuple[Grant, ...]


class GrantRevokeParams(Wire, frozen=True, kw_only=True):
    grant_id: str


class GrantRevokeResult(Wire, frozen=True, kw_only=True):
    grant: Grant


class Approval(Wire, frozen=True, kw_only=True):
    """What would run, exactly.

    `rule` says why it is asked; `grantable` is what a grant would allow from then on, null where none can be given, and
    `remembered` says it in words. `basis` stands for the arguments and the state of the disk that this was made from.
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
    grantable: GrantedCall | None = None
    basis: str = ""


class UnknownCall(Wire, frozen=True, kw_only=True):
    """A call that was under way when the engine was killed: whether it took effect is not known.

    `text` says in plain words what it does, `command` is the exact command line where it runs one. `execution_id`
    names its durable record.
    """

    execution_id: str
    call_id: str
    tool: str
    text: str
    started_at: Timestamp
    command: str | None = None


class ReachedLimit(Wire, frozen=True, kw_only=True):
    """A limit that is used up; going on adds `adds` to what is `used`."""

    kind: LimitKind
    used: float
    limit: float
    adds: float


class Ask(Wire, frozen=True, kw_only=True):
    """`text` is the question. `choices` may be empty (free text). Once answered it says by whom.

    It outlives its engine: it waits on, and may be answered, while its task is interrupted. `call_id` is the call that
    put a question, or that is made again and again.
    `limit` is set where a limit can be raised to an `amount` that the answer names.
    """

    id: str
    task_id: str
    conversation_id: str
    kind: AskKind
    text: str
    created_at: Timestamp
    status: AskStatus = "waiting"
    choices: tuple[str, ...] = ()
    approval: Approval | None = None
    unknown: UnknownCall | None = None
    limit: ReachedLimit | None = None
    call_id: str | None = None
    amount: float | None = None
    answer: str | None = None
    allowed: bool | None = None
    remember: Remember = "once"
    answered_by: str | None = None
    answered_at: Timestamp | None = None
    owner: str = "local"


class AskAnswerParams(Wire, frozen=True, kw_only=True):
    """Settle an ask.

    A question takes `text`; an approval takes `allow`, `remember` and, when denied, `text` as the reason; a limit
    takes `allow` (go on with as much again, or with `amount` as the new limit, which must be more than was used); an
    unknown outcome takes one of its choices as `text`.
    """

    ask_id: str
    text: str = ""
    allow: bool | None = None
    remember: Remember = "once"
    amount: float | None = None


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


ASK_ANSWER = Method("ask/answer", AskAnswerParams, AskAnswerResult, True, "Settle an ask.")

ASK_LIST = Method("ask/list", AskListParams, AskListResult, False, "What waits for a person.")

GRANT_LIST = Method("grant/list", GrantListParams, GrantListResult, False, "Remembered decisions.")

GRANT_REVOKE = Method("grant/revoke", GrantRevokeParams, GrantRevokeResult, True, "Forget a decision.")
