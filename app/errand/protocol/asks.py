"""Asks and grants."""

from typing import Literal

from errand.protocol.base import Method, Timestamp, Wire
from errand.protocol.blocks import FileEdit
from errand.protocol.tasks.groups import ApproveMode, LimitKind

GrantScope = Literal["conversation", "workspace", "user"]
GrantDecision = Literal["allow", "deny"]
OfferKind = Literal["exact", "prefix", "content", "file", "folder", "host", "tool", "server", "code"]

AskKind = Literal["question", "approval", "limit", "unknown"]
AskStatus = Literal["waiting", "answered", "cancelled"]
Remember = Literal["once", "conversation", "workspace", "user"]
CallVerdict = Literal["allow", "ask", "deny"]
Risk = Literal["low", "medium", "high"]
# What settled an ask: a person's answer, a person's rule, a change of the approval mode, or the time limit of asks.
SettledBy = Literal["person", "rule", "mode", "timeout"]

# Choices of an ask about a call whose outcome is unknown; the answer is one of these texts.
RUN_AGAIN, SKIP, STOP = "Run it again", "Skip it", "Stop the task"


# The language of what is typed into the terminal of a running program.
TYPED = "typed"


class GrantedCall(Wire, frozen=True, kw_only=True):
    """The calls that a grant covers. Paths are absolute, with links resolved. One of these:

    - `command`: this exact command line in `working_dir`; null there is every folder, for denials only.
    - `prefix`: commands whose parsed words begin so, in the workspace `working_dir`, or in each one if that is null.
    - `path`: `operation` on this path. The operation `edit` is any content of the file; with `content`, a fingerprint
      of a call's arguments, it is this call alone.
    - `folder`: `operation` on everything in the folder and below: `edit`, or for denials `read` (and write), `write`.
    - `host`: addresses of this host: a name, `*.name` for the names below it, or either with `:port`.
    - `service`: the tool `server/tool` of another program; `server/*` is each tool of that server. With `content`, a
      fingerprint of a call's arguments, it is this call alone. `fingerprints` are those of the tools that an allowance
      covers, as their server described them; an allowance without them gets those of its first use.
    - the operation `code` alone: any code that this tool runs in the sandbox; with `content`, this code.
    - none of these: each call of the tool, for denials only.
    """

    operation: str = ""
    path: str | None = None
    command: str | None = None
    working_dir: str | None = None
    prefix: tuple[str, ...] = ()
    folder: str | None = None
    content: str | None = None
    host: str | None = None
    service: str | None = None
    fingerprints: tuple[str, ...] = ()


class Grant(Wire, frozen=True, kw_only=True):
    """`call` is what the grant covers, null for a grant in an old format, which is invalid; `exact` describes it.

    `tool` empty stands for every tool. `scope_id` is the conversation's id or the workspace's path, empty for `user`.
    `ask_id` is the ask whose answer made it, empty for a rule that a person wrote. After `expires_at` it covers
    nothing.
    """

    id: str
    tool: str
    exact: str
    call: GrantedCall | None = None
    scope: GrantScope
    scope_id: str
    created_at: Timestamp
    created_by: str
    ask_id: str = ""
    decision: GrantDecision = "allow"
    expires_at: Timestamp | None = None
    revoked_at: Timestamp | None = None
    last_used_at: Timestamp | None = None
    owner: str = "local"


class GrantDraft(Wire, frozen=True, kw_only=True):
    """A rule that a person writes; the fields are those of `Grant`. `scope_id` of a workspace may contain links."""

    decision: GrantDecision
    call: GrantedCall
    scope: GrantScope
    scope_id: str = ""
    tool: str = ""
    expires_at: Timestamp | None = None


class GrantOffer(Wire, frozen=True, kw_only=True):
    """An allowance that the answer to an approval may give: `calls`, each as a grant of its own, in one of `scopes`.

    `kind`: `exact` is this call, `prefix` commands that begin alike, `content` this content of the file, `file` any
    content of it, `folder` any content of files in its folder, `host` the addresses of a host, `tool` any call of a
    tool of another program, `server` any tool of that program, `code` any code. `covers` is a sentence; `example` is a
    call that would be covered, `not_covered` one that would not.
    """

    kind: OfferKind
    calls: tuple[GrantedCall, ...]
    scopes: tuple[GrantScope, ...]
    covers: str
    example: str = ""
    not_covered: str = ""


class CoveredCall(Wire, frozen=True, kw_only=True):
    """A recorded call that a grant would decide: today's verdict without the grant, and with it."""

    task_id: str
    conversation_id: str
    call_id: str
    tool: str
    text: str
    at: Timestamp
    without: CallVerdict
    verdict: CallVerdict


class GrantAddParams(Wire, frozen=True, kw_only=True):
    rules: tuple[GrantDraft, ...]


class GrantAddResult(Wire, frozen=True, kw_only=True):
    grants: tuple[Grant, ...]


class GrantCoveredParams(Wire, frozen=True, kw_only=True):
    """A grant or a rule, and the number of recorded calls to judge, newest first (at most 1,000)."""

    grant_id: str | None = None
    rule: GrantDraft | None = None
    most: int = 100


class GrantCoveredResult(Wire, frozen=True, kw_only=True):
    """`judged` counts the recorded calls that were judged; `calls` are those that the grant decides, newest first."""

    judged: int
    calls: tuple[CoveredCall, ...]


class GrantListParams(Wire, frozen=True, kw_only=True):
    revoked: bool = False


class GrantListResult(Wire, frozen=True, kw_only=True):
    """Expired grants are listed. `unreadable` counts stored grants that cannot be read, which cover nothing."""

    grants: tuple[Grant, ...]
    unreadable: int = 0


class GrantRevokeParams(Wire, frozen=True, kw_only=True):
    grant_id: str


class GrantRevokeResult(Wire, frozen=True, kw_only=True):
    grant: Grant


class Approval(Wire, frozen=True, kw_only=True):
    """The exact effect of a call that needs approval.

    `rule` is the reason for asking; `explained` has more lines: the rule's name, the parsed parts and the other
    findings, as `errand explain` prints them. `offers` are what may be allowed from now on, the narrowest first;
    `remembered` and `grantable` are their former form. `basis` is a fingerprint of the arguments and of the files on
    disk that this was made from. `modes` are the approval modes in which this would not be asked but allowed.
    `edits` are what it changes in files, as data, where `preview` is a diff. `sandbox` says what bounds a command.
    `address` is opened or acted on, `code` in `language` is run, `service` is the tool of another program
    (`server/tool`) that is called.
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
    offers: tuple[GrantOffer, ...] = ()
    explained: str = ""
    basis: str = ""
    modes: tuple[ApproveMode, ...] = ()
    sandbox: str = ""
    address: str = ""
    code: str = ""
    language: str = ""
    service: str = ""
    edits: tuple[FileEdit, ...] = ()


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
    it: after `expires_at` nobody can, an approval or limit is denied, and a question stays unanswered. `sub_agent` is
    the title of the sub-agent that asks.
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
    offer: int = 0
    expires_s: float | None = None
    answered_by: str | None = None
    answered_at: Timestamp | None = None
    settled_by: SettledBy = "person"
    expires_at: Timestamp | None = None
    sub_agent: str = ""
    owner: str = "local"


class AskAnswerParams(Wire, frozen=True, kw_only=True):
    """Settle an ask.

    A question takes `text`. An approval takes `allow` and, when denied, `text` as the reason. `remember` other than
    `once` allows what `approval.offers[offer]` says in that scope, for `expires_s` seconds or, if null, until it is
    revoked. A limit takes `allow`: continue with the same amount again, or with `amount` as the new limit, which must
    exceed what was used. An unknown outcome takes one of its choices as `text`. With `basis`, that of the approval that
    the person saw, the answer is refused unless the ask still has it.
    """

    ask_id: str
    text: str = ""
    allow: bool | None = None
    remember: Remember = "once"
    offer: int = 0
    expires_s: float | None = None
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

GRANT_ADD = Method(
    "grant/add", GrantAddParams, GrantAddResult, True, "Add rules that allow or deny calls: all of them or none."
)

GRANT_COVERED = Method(
    "grant/covered",
    GrantCoveredParams,
    GrantCoveredResult,
    False,
    "Which recorded calls a grant or a rule would decide.",
)

METHODS = (
    ASK_ANSWER,
    ASK_LIST,
    GRANT_LIST,
    GRANT_REVOKE,
    GRANT_ADD,
    GRANT_COVERED,
)
