"""Commands that run in the background of a conversation."""

from errand.protocol.base import Method, Timestamp, Wire


class BackgroundCommand(Wire, frozen=True, kw_only=True):
    """One command in the background; `id` is a short number within its conversation.

    It outlives the task that started it. `ended_at` is null while it runs; `exit_code` is negative for a signal, and
    null if it was stopped, `stopped_by` a person or the agent. `waits_for_input`: it has a terminal and reads from it.
    `last_lines` is the end of its output, of which there are `size` bytes.
    """

    id: str
    conversation_id: str
    task_id: str
    command: str
    working_dir: str
    started_at: Timestamp
    terminal: bool = False
    ended_at: Timestamp | None = None
    exit_code: int | None = None
    stopped_by: str = ""
    waits_for_input: bool = False
    last_lines: str = ""
    size: int = 0


class BackgroundListParams(Wire, frozen=True, kw_only=True):
    """The running commands of a conversation, by default of all, and those that ended last, oldest first."""

    conversation_id: str | None = None


class BackgroundListResult(Wire, frozen=True, kw_only=True):
    commands: tuple[BackgroundCommand, ...]


class BackgroundOutputParams(Wire, frozen=True, kw_only=True):
    """A piece of the output, starting at byte `offset`; negative: that many bytes before the end."""

    conversation_id: str
    id: str
    offset: int = 0


class BackgroundOutputResult(Wire, frozen=True, kw_only=True):
    """`text` has no escape sequences. `next_offset` continues after it, also when more comes later."""

    text: str
    size: int
    next_offset: int


class BackgroundStopParams(Wire, frozen=True, kw_only=True):
    """End the command and all its processes."""

    conversation_id: str
    id: str


class BackgroundInputParams(Wire, frozen=True, kw_only=True):
    """Type text and then keys (`enter`, `ctrl-c`, `up` …) into the terminal of a command that has one."""

    conversation_id: str
    id: str
    text: str = ""
    keys: tuple[str, ...] = ()


class BackgroundCommandResult(Wire, frozen=True, kw_only=True):
    command: BackgroundCommand


BACKGROUND_LIST = Method(
    "background/list",
    BackgroundListParams,
    BackgroundListResult,
    False,
    "List background commands.",
)
BACKGROUND_OUTPUT = Method(
    "background/output",
    BackgroundOutputParams,
    BackgroundOutputResult,
    False,
    "Get a piece of a background command's output.",
)
BACKGROUND_STOP = Method(
    "background/stop",
    BackgroundStopParams,
    BackgroundCommandResult,
    True,
    "Stop a background command.",
)
BACKGROUND_INPUT = Method(
    "background/input",
    BackgroundInputParams,
    BackgroundCommandResult,
    True,
    "Type into the terminal of a background command.",
)

METHODS = (BACKGROUND_LIST, BACKGROUND_OUTPUT, BACKGROUND_STOP, BACKGROUND_INPUT)
