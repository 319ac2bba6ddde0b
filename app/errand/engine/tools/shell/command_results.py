"""What the model gets about a command that has ended, and what the sandbox may have to do with its failure."""

from errand.engine.core.messages import Text
from errand.engine.sandbox.launch import CommandSandbox
from errand.engine.tools.base import Access
from errand.engine.tools.plain_text import clean_name
from errand.engine.tools.results import ToolError, ToolResult
from errand.engine.tools.shell.command import CommandResult, ShellCommand
from errand.engine.tools.shell.remarks import exit_remark, waited_for_keys
from errand.protocol.base import JsonObject, JsonValue
from errand.text.notice_text import ended_text, process_text, short_exit_text

_LAST_LINES = 3
_MAX_LINE_LENGTH = 1_000
_NO_NETWORK = (
    "[this command had no network, and none of its own options gives it one. Only the person can: for all commands by "
    "the option network of Errand (errand run --network on), for one by allowing it when asked. Go on without, or tell "
    "the person]"
)
_HTTP_ALONE = "[from the sandbox only HTTP and HTTPS lead out, through the proxy in HTTPS_PROXY: no SSH, no DNS]"
_READ_ONLY = (
    "[the sandbox refuses this: only the workspace, $TMPDIR and the caches of package managers can be changed, and "
    "files that configure git, editors or agents cannot (so no git config or git remote add: use git -c NAME=VALUE, or "
    "name the URL). Write in the workspace. Else tell the person: the setting writable_folders opens a folder]"
)
# How programs name what the sandbox refuses.
_READ_ONLY_SIGNS = ("Read-only file system", "Device or resource busy", "EROFS")
_NO_NETWORK_SIGNS = ("name resolution", "resolve host", "EAI_AGAIN", "ENOTFOUND", "Network is unreachable")


def command_result(command: ShellCommand, outcome: CommandResult, timeout_s: float, remarks: list[str]) -> ToolResult:
    """Return what the model gets of a command that has ended; raises `ToolError` if a limit or a stop ended it."""
    stdout, stderr = command.stdout.text(), command.stderr.text()
    details: JsonObject = {
        "stdout": stdout,
        "stderr": stderr,
        "exit_code": outcome.exit_code,
        "duration_ms": round(outcome.seconds * 1000),
        "stdout_file": str(command.stdout.file) if command.stdout.file else None,
        "stderr_file": str(command.stderr.file) if command.stderr.file else None,
        "ended": [process_text(process) for process in outcome.ended],
        "running": [process_text(process) for process in outcome.running],
    }
    output = joined_output(stdout, stderr)
    written = "\n".join(part for part in (stdout.rstrip("\n"), stderr.rstrip("\n")) if part)
    if outcome.end == "exited":
        if outcome.exit_code != 0:
            details["last_lines"] = _last_lines(written or "(no output)")
        text = "\n".join(part for part in (output or "(no output)", *_remarks(outcome), *remarks) if part)
        return ToolResult((Text(text),), details, _summary(outcome), is_error=outcome.exit_code != 0)
    summary = {"timeout": "Timed out", "waited": "waited for keys"}.get(outcome.end, "Operation aborted")
    what = f"{summary} after {timeout_s:g} s" if outcome.end == "timeout" else summary
    not_kept = _not_kept(outcome.not_kept) if outcome.not_kept else ""
    what = waited_for_keys(outcome.waited) if outcome.end == "waited" else f"{what}."
    head = [part for part in (what, ended_text(outcome.ended), not_kept, *remarks) if part]
    details["last_lines"] = _last_lines("\n".join((*head, _output_so_far(written))))
    raise ToolError("\n".join((*head, _output_so_far(output))), summary, details)


def sandbox_remarks(
    command: ShellCommand, outcome: CommandResult, allowed: Access | None, sandbox: CommandSandbox | None
) -> list[str]:
    """Return why a command failed, if the sandbox may be the reason, and how to go on."""
    if sandbox is None:
        return []
    output = command.stdout.text() + command.stderr.text()
    failed = bool(outcome.exit_code) or outcome.end != "exited"
    network = "open" if sandbox.profile.network else allowed.network if allowed is not None else "none"
    lacks_network = any(sign in output for sign in _NO_NETWORK_SIGNS)
    remarks: list[str] = []
    if lacks_network or (failed and network == "missing"):
        remarks.append(_HTTP_ALONE if network == "open" else _NO_NETWORK)
    if failed and any(sign in output for sign in _READ_ONLY_SIGNS):
        remarks.append(_READ_ONLY)
    return remarks


def _output_so_far(output: str) -> str:
    return f"Output so far:\n{output}" if output else "No output so far."


def _last_lines(text: str) -> list[JsonValue]:
    """Return the end of what a failed command wrote, where most programs state the cause."""
    lines = [line for line in text.split("\n") if line.strip()]
    return [line[-_MAX_LINE_LENGTH:] for line in lines[-_LAST_LINES:]]


def joined_output(stdout: str, stderr: str) -> str:
    """Return both outputs, the second one below a line that names it."""
    out, err = stdout.rstrip("\n"), stderr.rstrip("\n")
    return "\n".join(part for part in (out, f"[stderr]\n{err}" if err else "") if part)


def _remarks(outcome: CommandResult) -> list[str]:
    remarks: list[str] = []
    if outcome.exit_code:
        remarks.append(exit_remark(outcome.exit_code))
    if outcome.not_kept:
        remarks.append(_not_kept(outcome.not_kept))
    if outcome.running:
        names = ", ".join(map(process_text, outcome.running[:5])) + (", …" if len(outcome.running) > 5 else "")
        remarks.append(f"[{len(outcome.running)} still running in the background, until the task ends: {names}]")
    return remarks


def _not_kept(names: tuple[str, ...]) -> str:
    listed = ", ".join(map(clean_name, names[:10])) + (", …" if len(names) > 10 else "")
    return (
        f"[not kept: {listed}. Commands in the sandbox cannot make files that configure git, editors or agents: use "
        "the file tools, which ask the person. They were moved to not-kept in the folder of this task's output]"
    )


def _summary(outcome: CommandResult) -> str:
    left = f", {len(outcome.running)} in the background" if outcome.running else ""
    return f"{short_exit_text(outcome.exit_code or 0)}{left}"
