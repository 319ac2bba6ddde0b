"""Asks and grants."""

from typing import Literal

from app.protocol.base import Method, Timestamp, Wire
from app.protocol.tasks import ApproveMode, LimitKind

GrantScope = Literal["conversation", "workspace"]

AskKind = Literal["question", "approval", "limit", "unknown"]
AskStatus = Literal["waiting", "answered", "cancelled"]
Remember = Literal["once", "conversation", "workspace"]
Risk = Literal["low", "medium", "high"]
# What settled an ask: a person's answer, a change of the approval mode, or the time limit of asks.
SettledBy = Literal["person", "mode", "timeout"]

# Choices of an ask about a call whose outcome is unknown; the answer is one of these texts.
RUN_AGAIN, SKIP, STOP = "Run it again", "Skip it", "Stop the task"


class GrantedCall(Wire, frozen=True, kw_only=True):
    """What a grant allows: one operation, on one path, or one exact command in one folder.

    Paths are absolute, with links resolved.
    """

    operation: str
    path: str | None = None
    command: str | None = None
    working_dir: str | None = None


class Grant(Wire, frozen=True, kw_only=True):
    """`call` is what the grant allows, null for a grant in an old format, which is invalid; `exact` describes it.

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
    """The exact effect of a call that needs approval.

    `rule` is the reason for asking. `grantable` is what a grant would allow, null where no grant is possible;
    `remembered` describes it. `basis` is a fingerprint of the arguments and of the files on disk that this was made
    from. `modes` are the approval modes in which this would not be asked but allowed.
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
    modes: tuple[ApproveMode, ...] = ()


class UnknownCall(Wire, frozen=True, kw_only=True):
    """A call that was running when the engine was killed: its outcome is unknown.

    `text` describes the call, `command` is the exact command line if it runs one. `execution_id` names its durable
    record.
    """

    execution_id: str
    call_id: str
    tool: str
    text: str
    started_at: Timestamp
    command: str | None = None


class ReachedLimit(Wire, frozen=True, kw_only=True):
    """A limit that is used up. Continuing adds `adds` to `used`."""

    kind: LimitKind
    used: float
    limit: float
    adds: float


class Ask(Wire, frozen=True, kw_only=True):
    """A question to a person. `text` is the question; empty `choices` allow free text.

    An ask survives the engine: it stays open, and can be answered, while its task is interrupted. `call_id` is the
    call that asked a question, or the call that repeats. `limit` is set if the answer can raise a limit to an
    `amount`. `answered_by` and `answered_at` are set once it is answered. `settled_by` says what answered
    it: after `expires_at` nobody can, an approval or limit is denied, and a question stays unanswered.
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
    settled_by: SettledBy = "person"
    expires_at: Timestamp | None = None
    owner: str = "local"


class AskAnswerParams(Wire, frozen=True, kw_only=True):
    """Settle an ask.

    A question takes `text`. An approval takes `allow`, `remember` and, when denied, `text` as the reason. A limit
    takes `allow`: continue with the same amount again, or with `amount` as the new limit, which must exceed what was
    used. An unknown outcome takes one of its choices as `text`. With `basis`, that of the approval that the person saw,
    the answer is refused unless the ask still has it.
    """

    ask_id: str
    text: str = ""
    allow: bool | None = None
    remember: Remember = "once"
    amount: float | None = None
    basis: str | None = None


class AskAnswerResult(Wire, frozen=True, kw_only=True):
    """`won` is false if another answer came first; `ask` then holds that answer."""

    won: bool
    ask: Ask


class AskListParams(Wire, frozen=True, kw_only=True):
    """`task_ids` null selects all tasks."""

    waiting: bool = True
    task_id: str | None = None
    task_ids: tuple[str, ...] | None = None


class AskListResult(Wire, frozen=True, kw_only=True):
    asks: tuple[Ask, ...]


ASK_ANSWER = Method("ask/answer", AskAnswerParams, AskAnswerResult, True, "Answer an ask.")

ASK_LIST = Method("ask/list", AskListParams, AskListResult, False, "List asks, open ones by default.")

GRANT_LIST = Method("grant/list", GrantListParams, GrantListResult, False, "List grants.")

GRANT_REVOKE = Method("grant/revoke", GrantRevokeParams, GrantRevokeResult, True, "Revoke a grant.")

METHODS = (
    ASK_ANSWER,
    ASK_LIST,
    GRANT_LIST,
    GRANT_REVOKE,
)
