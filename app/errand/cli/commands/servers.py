"""`errand mcp` and `errand tools`: MCP servers, what they offer, and all tools with their use."""

import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import Annotated

from errand.cli.arguments import UsageError, workspace_path, wrong_arguments
from errand.cli.command import Command
from errand.cli.exit_codes import EXIT_ERROR
from errand.cli.follow.server_login import ServerLogin
from errand.cli.options import Action, Argument, CommandOptions, Flag, Option, Rest
from errand.cli.output import CommandOutput
from errand.cli.terminal.style import Style
from errand.cli.terminal.text import one_line, plain
from errand.client.connection import Connection
from errand.client.launch import connect
from errand.client.safe_text import escape_hidden, escape_hidden_line
from errand.protocol.servers import (
    MCP_ACCEPT_TOOL,
    MCP_LIST,
    MCP_LOG,
    MCP_LOGOUT,
    MCP_PROMPT,
    MCP_REMOVE,
    MCP_RESTART,
    MCP_SAVE,
    MCP_SET_ENABLED,
    MCP_SET_KEY,
    MCP_SHOW,
    MCP_TRUST,
    TOOL_LIST,
    McpAcceptParams,
    McpKeyParams,
    McpListParams,
    McpPrompt,
    McpPromptParams,
    McpSaveParams,
    McpServer,
    McpServerParams,
    McpSetEnabledParams,
    McpShowResult,
    McpTrustParams,
    ToolInfo,
)
from errand.system.environment import is_secret
from errand.system.paths import Paths
from errand.text.translation import tr, trn
from errand.text.visible_text import command_text

_ACTIONS = (
    Action("list", "list servers, including those of this workspace (the default)"),
    Action("add NAME -- COMMAND …", "add a server that is started when needed"),
    Action("add NAME --url https://…", "add a server on the web"),
    Action("show NAME", "show the tools, resources and prompts of a server", first="server"),
    Action("trust NAME", "trust a server that a file of this workspace names", first="server"),
    Action("distrust NAME", "no longer trust a server of this workspace", first="server"),
    Action("login|logout NAME", "sign in to a server on the web, or out", first="server"),
    Action(
        "enable|disable|restart NAME",
        "enable, disable or restart a server",
        first="server",
    ),
    Action("remove NAME", "remove a server and its keys", first="server"),
    Action("log NAME", "show the log of a server", first="server"),
    Action("set-key NAME VARIABLE", "store the value of a variable", first="server"),
    Action(
        "accept NAME TOOL", "accept the changed description of a tool, so that rules apply to it again", first="server"
    ),
    Action("prompt NAME/PROMPT [ARGUMENT=VALUE …]", "show the text of a prompt, with its arguments or --argument"),
)
_MAX_KEY_LENGTH = 10_000
_NAME_WIDTH = 18


class McpOptions(CommandOptions, frozen=True, kw_only=True):
    arguments: Annotated[tuple[str, ...], Argument("WHAT", "list (the default), or another action and a server")] = ()
    command: Annotated[tuple[str, ...], Rest()] = ()
    url: Annotated[str, Option("--url", "with add: the address of a server on the web", "URL")] = ""
    env: Annotated[
        tuple[str, ...],
        Option("--env", "with add: an environment variable, NAME=VALUE, or NAME with its current value", "NAME"),
    ] = ()
    header: Annotated[
        tuple[str, ...],
        Option("--header", "with add --url: a header, NAME=VALUE; ${VARIABLE} is kept as a reference", "H"),
    ] = ()
    client_id: Annotated[
        str, Option("--client-id", "with add --url: the client id that you registered for signing in", "ID")
    ] = ""
    client_secret: Annotated[
        str, Option("--client-secret", "with --client-id: the variable with its secret", "VARIABLE")
    ] = ""
    callback_port: Annotated[
        int,
        Option("--callback-port", "with --client-id: the port of the callback http://127.0.0.1:PORT/callback", "PORT"),
    ] = 0
    argument: Annotated[
        tuple[str, ...], Option("--argument", "with prompt: a value for it; can be repeated", "NAME=VALUE")
    ] = ()
    answer: Annotated[
        str, Option("--answer", "with login: the address at which a browser on another machine ended", "URL")
    ] = ""
    issuer: Annotated[
        str, Option("--issuer", "with login: the authorization server that may get your client secret", "URL")
    ] = ""
    sandbox: Annotated[bool, Flag("--sandbox", "with add: run it in the sandbox, in your home folder")] = False
    timeout: Annotated[float, Option("--timeout", "with add: time limit of a call in seconds", "S")] = 60.0
    replace: Annotated[bool, Flag("--replace", "with add: replace the server of this name")] = False
    workspace: Annotated[
        str | None, Option("--workspace", "include the servers of this folder (default: the current one)", "DIR")
    ] = None
    yes: Annotated[bool, Flag("--yes", "with trust: do not ask for confirmation")] = False


async def mcp(options: McpOptions, paths: Paths, output: CommandOutput) -> int:
    """List, add, change and look at MCP servers."""
    async with await connect(paths, "errand mcp") as connection:
        return await _Servers(connection, options, output).do()


MCP = Command(McpOptions, mcp, actions=_ACTIONS)


class _Servers:
    def __init__(self, connection: Connection, options: McpOptions, output: CommandOutput) -> None:
        self._connection = connection
        self._options = options
        self._output = output
        self._workspace = workspace_path(options.workspace)

    async def do(self) -> int:
        match self._options.arguments or ("list",):
            case ["list"]:
                await self._list()
            case ["add", name]:
                await self._add(name, self._options.command)
            case ["remove", name]:
                await self._connection.call(MCP_REMOVE, McpServerParams(name=name))
                self._output.result({"name": name}, tr("Removed {name} and its keys.").format(name=plain(name)))
            case ["enable" | "disable" as action, name]:
                params = McpSetEnabledParams(name=name, enabled=action == "enable")
                self._print((await self._connection.call(MCP_SET_ENABLED, params)).server)
            case ["restart", name]:
                server = (await self._connection.call(MCP_RESTART, self._named(name))).server
                self._print(server)
                return 0 if server.state == "ready" else EXIT_ERROR
            case ["login", name]:
                return await self._login(name)
            case ["logout", name]:
                self._print((await self._connection.call(MCP_LOGOUT, self._named(name))).server)
            case ["show", name]:
                await self._show(name)
            case ["log", name]:
                log = await self._connection.call(MCP_LOG, self._named(name))
                self._output.result(log, plain(log.text) or tr("The log is empty since the engine started."))
            case ["trust" | "distrust" as action, name]:
                await self._trust(name, trusted=action == "trust")
            case ["set-key", name, variable]:
                await self._set_key(name, variable)
            case ["accept", name, tool]:
                params = McpAcceptParams(name=name, tool=tool, workspace=self._workspace)
                await self._connection.call(MCP_ACCEPT_TOOL, params)
                text = tr("Permissions apply to {tool} of {name} again.").format(tool=plain(tool), name=plain(name))
                self._output.result({"name": name, "tool": tool}, text)
            case ["prompt", target, *arguments]:
                values = (*arguments, *self._options.argument)
                text = await mcp_prompt(self._connection, target, values, self._workspace)
                self._output.result({"text": text}, plain(text))
            case _:
                raise wrong_arguments("mcp", _ACTIONS, self._options.arguments)
        return 0

    def _named(self, name: str) -> McpServerParams:
        return McpServerParams(name=name, workspace=self._workspace)

    async def _all(self) -> tuple[McpServer, ...]:
        return (await self._connection.call(MCP_LIST, McpListParams(workspace=self._workspace))).servers

    async def _list(self) -> None:
        empty = tr("No MCP servers yet. Add one: errand mcp add NAME -- command args…")
        self._output.each(await self._all(), lambda server: server_lines(server, self._output.style), empty=empty)

    async def _login(self, name: str) -> int:
        terminal, options = self._output.terminal, self._options
        named, as_json = self._named(name), self._output.as_json
        login = ServerLogin(self._connection, terminal, named, options.issuer, as_json=as_json)
        if not options.answer:
            return await login.run()
        await login.answer(options.answer)
        text = tr("Accepted. The command that waits for the sign-in shows the result.")
        self._output.result({"name": name}, text)
        return 0

    async def _add(self, name: str, command: Sequence[str]) -> None:
        options = self._options
        if bool(command) == bool(options.url):
            raise UsageError(tr("Give its command after --, or its address with --url. Help: errand mcp --help"))
        environment, keys = variables(options.env)
        secret = options.client_secret
        if secret and (value := os.environ.get(secret, "")):
            keys[secret] = value
        headers = dict(_pair(text, "--header") for text in options.header)
        params = McpSaveParams(
            name=name,
            command=tuple(command),
            url=options.url,
            environment=environment,
            headers=headers,
            keys=keys,
            sandbox=options.sandbox,
            timeout_s=options.timeout,
            client_id=options.client_id,
            client_secret=f"${{{secret}}}" if secret else "",
            callback_port=options.callback_port,
            replace=options.replace,
        )
        server = (await self._connection.call(MCP_SAVE, params)).server
        self._print(server)
        text = tr("It starts when a task needs it. Try it now: errand mcp show {name}")
        self._output.line(text.format(name=plain(name)))

    async def _show(self, name: str) -> None:
        details = await self._connection.call(MCP_SHOW, self._named(name))
        self._output.result(details, *details_lines(details, self._output.style, self._output.width))

    async def _trust(self, name: str, *, trusted: bool) -> None:
        server = next((server for server in await self._all() if name in (server.name, server.id)), None)
        if server is None or not server.workspace:
            raise UsageError(
                tr("No file in {workspace} names a server {name!r}.").format(workspace=self._workspace, name=name)
            )
        for line in server.started.splitlines():
            self._output.line(escape_hidden(line))
        yes = self._options.yes or not trusted
        await self._output.confirm(tr("Trust exactly this?"), yes=yes, unchanged=tr("Nothing was changed."))
        params = McpTrustParams(
            name=server.name, workspace=server.workspace, fingerprint=server.fingerprint, trusted=trusted
        )
        self._print((await self._connection.call(MCP_TRUST, params)).server)

    async def _set_key(self, name: str, variable: str) -> None:
        value = os.environ.get(variable, "")
        if not value and not sys.stdin.isatty():
            value = sys.stdin.readline(_MAX_KEY_LENGTH)
        if not value.strip():
            raise UsageError(
                tr("Set the variable {variable} here, or pass its value on standard input.").format(variable=variable)
            )
        params = McpKeyParams(name=name, variable=variable, value=value.strip(), workspace=self._workspace)
        result = await self._connection.call(MCP_SET_KEY, params)
        self._output.result(result, plain(result.notice))

    def _print(self, server: McpServer) -> None:
        self._output.result(server, *server_lines(server, self._output.style))


def details_lines(details: McpShowResult, style: Style, width: int) -> list[str]:
    """Return the server, then its tools, remarks, resources and prompts, a line each."""
    lines = server_lines(details.server, style)
    for tool in details.server.tools:
        mark = style.amber(tr(" (its description has changed: permissions do not apply)")) if tool.changed else ""
        about = one_line(tool.description, max(20, width - len(tool.name) - 6))
        lines.append(f"  {style.bold(plain(tool.name))}  {style.dim(plain(about))}{mark}")
    lines += [f"  {style.amber(plain(note))}" for note in details.server.notes]
    for resource in details.resources:
        about = style.dim(plain(one_line(resource.name or resource.description, 60)))
        lines.append(tr("  resource {uri}  {about}").format(uri=plain(resource.uri), about=about))
    return lines + [tr("  prompt {prompt}").format(prompt=plain(prompt_line(prompt))) for prompt in details.prompts]


def server_lines(server: McpServer, style: Style) -> list[str]:
    """Return a server in one line, with more lines for what stands in its way."""
    origin = tr("from {file} in this folder").format(file=server.file) if server.workspace else ""
    target = command_text(server.command) or escape_hidden_line(server.url)
    state = state_text(server)
    color = style.green if server.state == "ready" else style.dim if server.state == "idle" else style.amber
    lines = [f"{style.bold(escape_hidden_line(server.name))}  {style.join(color(state), style.dim(plain(origin)))}"]
    if target:
        lines.append(f"  {style.dim(target)}")
    if "://" in server.client_issuer:
        issuer = tr("client secret for {issuer}").format(issuer=escape_hidden_line(server.client_issuer))
        lines.append(f"  {style.dim(issuer)}")
    for problem in filter(None, (server.problem, server.login_problem)):
        lines.append(f"  {style.amber(plain(problem))}")
    if server.trust == "unknown" and (server.command or server.url):
        lines.append(tr("  Review and trust it: errand mcp trust {name}").format(name=plain(server.name)))
    return lines


def state_text(server: McpServer) -> str:
    if not server.enabled:
        return "off"
    if not server.command and not server.url:
        return tr("cannot be used")
    if server.trust != "trusted":
        return (
            "declined"
            if server.trust == "declined"
            else tr("changed, not trusted")
            if server.changed
            else tr("not trusted")
        )
    texts = {
        "idle": tr("starts when needed"),
        "starting": "starting",
        "ready": trn("ready, {n} tool", "ready, {n} tools", len(server.tools)),
        "failed": tr("failed, tries again when needed"),
        "given_up": tr("failed too often: restart it"),
        "needs_login": tr("sign-in required"),
    }
    if server.login_address:
        return tr("waiting for you to sign in in the browser")
    if not server.has_login:
        return texts[server.state]
    login = tr("{state}, signed in with too few rights") if server.wants_login else tr("{state}, signed in")
    return login.format(state=texts[server.state])


def prompt_line(prompt: McpPrompt) -> str:
    arguments = " ".join(f"{part.name}=…" if part.required else f"[{part.name}=…]" for part in prompt.arguments)
    about = one_line(prompt.description, 60)
    return " ".join(filter(None, (prompt.name, arguments, f" {about}" if about else "")))


def variables(definitions: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the variables of a server, and the keys among them, which are stored apart and only referred to."""
    environment: dict[str, str] = {}
    keys: dict[str, str] = {}
    for text in definitions:
        name, mark, value = text.partition("=")
        if not mark:
            value = os.environ.get(name, "")
            if not value:
                raise UsageError(tr("The variable {name} is not set here. Use --env {name}=VALUE.").format(name=name))
        if is_secret(name, value) and "${" not in value:
            keys[name], value = value, f"${{{name}}}"
        environment[name] = value
    return environment, keys


async def mcp_prompt(connection: Connection, target: str, arguments: Sequence[str], workspace: str) -> str:
    """Return the text of a prompt named `server/prompt`."""
    name, mark, prompt = target.partition("/")
    if not mark or not prompt:
        raise UsageError(tr("Give a prompt as SERVER/PROMPT; errand mcp show SERVER lists them."))
    values = dict(_pair(text, "ARGUMENT") for text in arguments)
    params = McpPromptParams(name=name, prompt=prompt, arguments=values, workspace=workspace)
    return (await connection.call(MCP_PROMPT, params)).text


def _pair(text: str, what: str) -> tuple[str, str]:
    name, mark, value = text.partition("=")
    if not mark or not name:
        raise UsageError(tr("{what}: {text!r} is not NAME=VALUE.").format(what=what, text=text))
    return name, value


class ToolsOptions(CommandOptions, frozen=True, kw_only=True):
    workspace: Annotated[
        str | None, Option("--workspace", "include the servers of this folder (default: the current one)", "DIR")
    ] = None


async def tools(options: ToolsOptions, paths: Paths, output: CommandOutput) -> int:
    """List all tools: their tier, where they come from, their last use, who has them."""
    async with await connect(paths, "errand tools") as connection:
        tools = (await connection.call(TOOL_LIST, McpListParams(workspace=workspace_path(options.workspace)))).tools
    everyone = frozenset(name for tool in tools for name in tool.personalities)
    output.each(tools, lambda tool: [tool_line(tool, everyone, output.style)])
    return 0


TOOLS = Command(ToolsOptions, tools)


def _user(tool: ToolInfo, personality_id: str) -> str:
    if personality_id not in tool.readers:
        return personality_id
    return tr("{name} (reads only)").format(name=personality_id)


def tool_line(tool: ToolInfo, everyone: frozenset[str], style: Style) -> str:
    """Return a tool in one line. `everyone` are the personalities: if all have it, none is named."""
    origin = tr("from {origin}").format(origin=tool.origin) if tool.origin else ""
    unused = "" if tool.tier == "free" else tr("not used recently")
    last_use = unused
    if tool.last_used_at is not None:
        last_use = tr("last used {time:%Y-%m-%d %H:%M}").format(time=tool.last_used_at.astimezone())
    names = ", ".join(map(partial(_user, tool), tool.personalities)) or tr("nobody")
    is_of_all = everyone <= {*tool.personalities} and not tool.readers
    users = "" if is_of_all else tr("available to {names}").format(names=names)
    changed = style.amber(tr("description changed: permissions do not apply")) if tool.changed else ""
    facts = style.join(tool.tier, plain(origin), last_use, plain(users))
    return f"{style.bold(plain(tool.name).ljust(_NAME_WIDTH))}  {style.join(style.dim(facts), changed)}"
