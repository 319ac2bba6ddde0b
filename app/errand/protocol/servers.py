"""Tools, and the MCP servers that bring more of them."""

from typing import Literal

from errand.protocol.base import EmptyResult, Method, Timestamp, Trust, Wire

# `given_up`: it failed too often in a row and starts again only when told to; `needs_login`: it wants a person's login.
ServerState = Literal["idle", "starting", "ready", "failed", "given_up", "needs_login"]
ToolTier = Literal["free", "read", "write", "run"]


class McpTool(Wire, frozen=True, kw_only=True):
    """A tool of a server. `name` is what models call, `own_name` what the server calls it.

    `changed`: its server describes it otherwise than when a person last saw it, so no grant holds for it; `known` is
    the description of then.
    """

    name: str
    own_name: str
    description: str
    changed: bool = False
    known: str = ""


class McpServer(Wire, frozen=True, kw_only=True):
    """A server from the settings, or from `file` of a `workspace`.

    `id` is its name in rules. `started` says in full what is started or opened, `fingerprint` covers it. `problem` is
    the reason why it is not ready or cannot be used. `notes` say which of its tools are left out. `title` and `version`
    are what it says of itself. `has_login`: tokens of a sign-in are stored. `wants_login`: it refused
    for want of one, or of one with more rights. `login_address` is what to open while one
    waits for a person, `login_problem` why the last one failed. `client_id` and `callback_port` are those of a program
    that the person registered at its authorization server. `client_issuer` is the one that the secret was entered for;
    `new_issuer` is another one that asks for it in a sign-in: `mcp/login` with it allows that.
    """

    id: str
    name: str
    started: str
    fingerprint: str
    state: ServerState
    command: tuple[str, ...] = ()
    url: str = ""
    environment: dict[str, str] = {}  # noqa: RUF012 -- msgspec makes a new one for each
    headers: dict[str, str] = {}  # noqa: RUF012
    sandbox: bool = False
    enabled: bool = True
    timeout_s: float = 60.0
    workspace: str = ""
    file: str = ""
    problem: str = ""
    trust: Trust = "trusted"
    changed: bool = False
    title: str = ""
    version: str = ""
    process_id: int | None = None
    tools: tuple[McpTool, ...] = ()
    notes: tuple[str, ...] = ()
    has_login: bool = False
    wants_login: bool = False
    login_address: str = ""
    login_problem: str = ""
    client_id: str = ""
    callback_port: int = 0
    client_issuer: str = ""
    new_issuer: str = ""


class McpListParams(Wire, frozen=True, kw_only=True):
    """List the servers, with `workspace` also those that its files name. Starts none."""

    workspace: str | None = None


class McpListResult(Wire, frozen=True, kw_only=True):
    servers: tuple[McpServer, ...]


class McpServerParams(Wire, frozen=True, kw_only=True):
    """A server by its name or id; one of a workspace is found there."""

    name: str
    workspace: str | None = None


class McpServerResult(Wire, frozen=True, kw_only=True):
    server: McpServer


class McpSaveParams(Wire, frozen=True, kw_only=True):
    """Add a server to the settings, or replace the one of this name: a `command`, or a `url`.

    Values may refer to variables as `${NAME}`. `keys` are values of such variables, stored among the keys. `replace`
    false refuses a name that is taken. `client_id`, `client_secret` (a `${NAME}`) and `callback_port` are those of a
    program that the person registered at the authorization server of a `url`.
    """

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    environment: dict[str, str] = {}  # noqa: RUF012
    headers: dict[str, str] = {}  # noqa: RUF012
    keys: dict[str, str] = {}  # noqa: RUF012
    sandbox: bool = False
    enabled: bool = True
    timeout_s: float = 60.0
    replace: bool = False
    client_id: str = ""
    client_secret: str = ""
    callback_port: int = 0

    def __repr__(self) -> str:
        """Without the values of keys, so that no log or error contains them."""
        return f"McpSaveParams({self.name!r}, {self.command!r}, {self.url!r}, keys={sorted(self.keys)})"


class McpSetEnabledParams(Wire, frozen=True, kw_only=True):
    name: str
    enabled: bool


class McpTrustParams(Wire, frozen=True, kw_only=True):
    """Decide about a server of a workspace. `fingerprint` is that of the server that the person saw.

    Refused if the file names another one by now.
    """

    name: str
    workspace: str
    fingerprint: str
    trusted: bool


class McpKeyParams(Wire, frozen=True, kw_only=True):
    """Store the value of a variable that a server refers to. An empty value removes it."""

    name: str
    variable: str
    value: str
    workspace: str | None = None

    def __repr__(self) -> str:
        return f"McpKeyParams({self.name!r}, {self.variable!r})"


class McpKeyResult(Wire, frozen=True, kw_only=True):
    notice: str


class McpLoginParams(Wire, frozen=True, kw_only=True):
    """`issuer` is the authorization server that the person allows to get the client secret that they entered."""

    name: str
    workspace: str | None = None
    issuer: str = ""


class McpLoginResult(Wire, frozen=True, kw_only=True):
    """`address` is to be opened in a browser on the engine's machine; the end of the sign-in is an `mcpUpdate`."""

    address: str
    server: McpServer


class McpFinishLoginParams(Wire, frozen=True, kw_only=True):
    """The `address` at which a browser on another machine ended: one that begins with http://127.0.0.1."""

    name: str
    address: str
    workspace: str | None = None

    def __repr__(self) -> str:
        """Without the code in the address."""
        return f"McpFinishLoginParams({self.name!r})"


class McpLogResult(Wire, frozen=True, kw_only=True):
    """The standard error of a server and what happened to it, newest last."""

    text: str


class McpResource(Wire, frozen=True, kw_only=True):
    uri: str
    name: str = ""
    description: str = ""


class McpPromptArgument(Wire, frozen=True, kw_only=True):
    name: str
    description: str = ""
    required: bool = False


class McpPrompt(Wire, frozen=True, kw_only=True):
    """A text that a server offers to people, with arguments to fill in."""

    name: str
    description: str = ""
    arguments: tuple[McpPromptArgument, ...] = ()


class McpShowResult(Wire, frozen=True, kw_only=True):
    server: McpServer
    resources: tuple[McpResource, ...] = ()
    prompts: tuple[McpPrompt, ...] = ()


class McpPromptListParams(Wire, frozen=True, kw_only=True):
    """List the prompts of servers, with `workspace` also of the trusted ones that its files name.

    `start` connects those that are not.
    """

    workspace: str | None = None
    start: bool = False


class McpServerPrompt(Wire, frozen=True, kw_only=True):
    server: str
    prompt: McpPrompt


class McpPromptListResult(Wire, frozen=True, kw_only=True):
    """`idle` are the servers that were not asked because they are not connected; `problems` say why others failed."""

    prompts: tuple[McpServerPrompt, ...] = ()
    idle: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class McpPromptParams(Wire, frozen=True, kw_only=True):
    name: str
    prompt: str
    arguments: dict[str, str] = {}  # noqa: RUF012
    workspace: str | None = None


class McpPromptResult(Wire, frozen=True, kw_only=True):
    """The prompt as text, for the composer."""

    text: str


class McpAcceptParams(Wire, frozen=True, kw_only=True):
    """A person has seen what a tool says now: grants hold for it again. `tool` is its name for models."""

    name: str
    tool: str
    workspace: str | None = None


class ToolInfo(Wire, frozen=True, kw_only=True):
    """A tool that tasks can have. `tier` is the highest permission that one of its calls may need.

    `origin` is empty for a tool of Errand, else the name of its MCP server. `personalities` are the ids of those whose
    agents have it, `readers` those of them whose agents can only read with it. `last_used_at` looks at the newest
    calls only.
    """

    name: str
    label: str
    description: str
    tier: ToolTier
    origin: str = ""
    personalities: tuple[str, ...] = ()
    readers: tuple[str, ...] = ()
    last_used_at: Timestamp | None = None
    changed: bool = False


class ToolListResult(Wire, frozen=True, kw_only=True):
    tools: tuple[ToolInfo, ...]


class ToolSwitchParams(Wire, frozen=True, kw_only=True):
    """Give the agents of a personality a tool, or take it from them. `mcp:SERVER` is each tool of a server.

    A reading form (`code:read`) takes the place of the tool, and the other way round. A personality that only reads is
    given a tool in its reading form, if there is one.
    """

    tool: str
    personality_id: str
    on: bool


TOOL_LIST = Method("tool/list", McpListParams, ToolListResult, False, "List all tools, with their origin and use.")

TOOL_SWITCH = Method("tool/switch", ToolSwitchParams, EmptyResult, True, "Give a personality a tool, or take it.")

MCP_LIST = Method("mcp/list", McpListParams, McpListResult, False, "List the MCP servers.")

MCP_SAVE = Method("mcp/save", McpSaveParams, McpServerResult, True, "Add or change an MCP server.")

MCP_REMOVE = Method("mcp/remove", McpServerParams, EmptyResult, True, "Remove an MCP server, with its keys.")

MCP_SET_ENABLED = Method("mcp/set_enabled", McpSetEnabledParams, McpServerResult, True, "Switch a server on or off.")

MCP_TRUST = Method("mcp/trust", McpTrustParams, McpServerResult, True, "Decide about a server of a workspace.")

MCP_RESTART = Method("mcp/restart", McpServerParams, McpServerResult, True, "Restart a server, whatever failed before.")

# No result of these is stored: an address holds what only the person at the browser should see.
MCP_LOGIN = Method("mcp/login", McpLoginParams, McpLoginResult, False, "Begin a sign-in at a server on the web.")

MCP_FINISH_LOGIN = Method("mcp/finish_login", McpFinishLoginParams, EmptyResult, False, "Finish it from elsewhere.")

MCP_CANCEL_LOGIN = Method("mcp/cancel_login", McpServerParams, EmptyResult, True, "Cancel the sign-in that waits.")

MCP_LOGOUT = Method("mcp/logout", McpServerParams, McpServerResult, True, "Sign out: remove the tokens of a server.")

MCP_SHOW = Method("mcp/show", McpServerParams, McpShowResult, False, "Connect a server and list what it has.")

MCP_LOG = Method("mcp/log", McpServerParams, McpLogResult, False, "Get the log of a server.")

MCP_SET_KEY = Method("mcp/set_key", McpKeyParams, McpKeyResult, True, "Store the value of a server's variable.")

MCP_PROMPTS = Method(
    "mcp/prompts", McpPromptListParams, McpPromptListResult, False, "List the prompts of all usable servers."
)

MCP_PROMPT = Method("mcp/prompt", McpPromptParams, McpPromptResult, False, "Get a prompt of a server as text.")

MCP_ACCEPT_TOOL = Method("mcp/accept_tool", McpAcceptParams, McpServerResult, True, "Accept what a tool says now.")

METHODS = (
    TOOL_LIST,
    TOOL_SWITCH,
    MCP_LIST,
    MCP_SAVE,
    MCP_REMOVE,
    MCP_SET_ENABLED,
    MCP_TRUST,
    MCP_RESTART,
    MCP_LOGIN,
    MCP_FINISH_LOGIN,
    MCP_CANCEL_LOGIN,
    MCP_LOGOUT,
    MCP_SHOW,
    MCP_LOG,
    MCP_SET_KEY,
    MCP_PROMPTS,
    MCP_PROMPT,
    MCP_ACCEPT_TOOL,
)
