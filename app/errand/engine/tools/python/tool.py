"""The tool `python`: runs code in the conversation's session, whose variables stay."""

import asyncio
import hashlib
from typing import Annotated

from msgspec import Meta, Struct

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.messages import Image, Text
from errand.engine.tools.arguments import decode, schema_of, text_argument
from errand.engine.tools.base import Access, ExecutionMode, PermissionTier
from errand.engine.tools.checkpoints import keep_before, record_after
from errand.engine.tools.context import ToolContext
from errand.engine.tools.output_capture import OutputCapture
from errand.engine.tools.plain_text import clean_name, clean_output
from errand.engine.tools.python.session import GONE, CodeOutcome, CodeOutput, PythonSession
from errand.engine.tools.results import OnUpdate, ToolError, ToolResult, hidden, text_result
from errand.protocol.base import JsonObject, JsonValue
from errand.protocol.blocks import CallDisplay
from errand.text.notice_text import exit_text
from errand.text.translation import marked

_UPDATE_PAUSE_S = 0.05
_UPDATE_SIZE = 4_000
_LAST_LINES = 3
_MAX_LINE_LENGTH = 1_000
_MAX_TARGET_LENGTH = 120
# More than the session sends of a value or a traceback.
_MAX_RESULT_LENGTH = 25_000
_MAX_CLEANED = 1_000_000
_MAX_NAMES = 10
_SANDBOXED = (
    "It runs in a sandbox like the commands of `shell`: only the workspace, $TMPDIR and caches can be changed, and it "
    "has the network only if the option network of the conversation is on."
)


class PythonArguments(Struct, frozen=True):
    code: Annotated[
        str,
        Meta(description="The value of a last expression is shown. There is no input."),
    ] = ""
    reset: Annotated[bool, Meta(description="Start a new session first; variables are lost.")] = False
    timeout_secs: Annotated[float, Meta(gt=0, le=86_400, description="The code is interrupted after this time.")] = 60


class Python:
    name = "python"
    label = "Python"
    description = (
        "Run Python code in a session that keeps variables and imports between calls, as a notebook does, with the "
        "workspace's virtual environment (.venv or venv) if there is one. Open figures of matplotlib and images are "
        "shown to the person and, if you see pictures, to you. Use it to compute, look at data and draw; change files "
        "of the project with `code`."
    )
    parameters = schema_of(PythonArguments)
    tier: PermissionTier = "run"
    activity = marked("running Python")
    execution_mode: ExecutionMode = "sequential"

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        if context.sandbox is not None:
            self.description = f"{Python.description} {_SANDBOXED}"
        self._allowed: dict[str, Access] = {}

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        return {key: value for key, value in arguments.items() if value is not None}

    @staticmethod
    def display(arguments: JsonObject) -> CallDisplay:
        code = text_argument(arguments, "code")
        lines = [line.strip() for line in code[:10_000].splitlines() if line.strip() and not line.startswith("#")]
        more = " …" if len(lines) > 1 else ""
        target = f"{lines[0][:_MAX_TARGET_LENGTH]}{more}" if lines else ""
        if not code:
            return CallDisplay(kind="execute", running="restarting Python", done="restarted Python", icon="terminal")
        return CallDisplay(
            kind="execute",
            running="running Python",
            done="ran Python",
            target=target,
            icon="terminal",
            content="code",
            language="python" if arguments.keys() == {"code"} else "",
            shows_output_end=True,
        )

    def access(self, arguments: JsonObject) -> Access:
        request = decode(arguments, PythonArguments)
        if not request.code:
            return Access("free", "Start a new session of Python: its variables are lost", changes=True)
        return Access(
            "run",
            f"Run Python code in {self._context.workspace}",
            operation="code" if self._context.sandbox is not None else "",
            content=hashlib.sha256(request.code.encode("utf-8", "surrogatepass")).hexdigest(),
            code=request.code,
            language="Python",
        )

    def allow(self, call_id: str, access: Access) -> None:
        self._allowed[call_id] = access

    async def execute(
        self, call_id: str, arguments: JsonObject, cancel: CancelSignal, on_update: OnUpdate
    ) -> ToolResult:
        request = decode(arguments, PythonArguments)
        allowed = self._allowed.pop(call_id, None)
        if allowed is not None and allowed.code != request.code:
            raise ToolError("The code is not what was allowed.")
        if not request.code and not request.reset:
            raise ToolError("There is no code. Give `code`, or `reset` to start a new session.")
        if not self._context.workspace.is_dir():
            raise ToolError(f"The workspace {self._context.workspace} is gone. Tell the person.")
        if cancel.is_set:
            raise ToolError("Operation aborted")
        session = self._context.sessions.get(PythonSession, PythonSession)
        if request.reset:
            await session.reset()
        if not request.code:
            return text_result("The session has ended: all its variables are gone.", "session ended")
        workspace = self._context.workspace
        files_before = await keep_before(self._context.checkpoints, call_id, "", workspace, cancel)
        if files_before is None and cancel.is_set:
            raise ToolError("Operation aborted")
        output = self._output(call_id)
        updates = _Updates(on_update, output)
        output.on_output = updates.grew
        code = request.code.encode("utf-8", "replace").decode()
        try:
            outcome = await session.run(self._context, code, output, request.timeout_secs, cancel)
        finally:
            updates.close()
            output.close()
            await record_after(files_before, workspace, is_stopped=cancel.is_set)
        result = _result(output, outcome, request.timeout_secs)
        return hidden(result, self._context.redactor)

    def _output(self, call_id: str) -> CodeOutput:
        # The id comes from a model: only a safe part of it may enter a file name.
        name = "".join(letter for letter in call_id if letter.isalnum() or letter in "-_")[-60:] or "call"
        folder, redactor = self._context.output_dir, self._context.redactor
        stdout = OutputCapture(folder / f"{name}-stdout.txt", redactor)
        return CodeOutput(stdout, OutputCapture(folder / f"{name}-stderr.txt", redactor), lambda: None)


class _Updates:
    """Shows the last output of running code, with a rate limit."""

    def __init__(self, on_update: OnUpdate, output: CodeOutput) -> None:
        self._on_update = on_update
        self._output = output
        self._timer: asyncio.TimerHandle | None = None

    def grew(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_UPDATE_PAUSE_S, self._show)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _show(self) -> None:
        self._timer = None
        stdout, stderr = self._output.stdout, self._output.stderr
        text = _joined(stdout.tail(_UPDATE_SIZE), stderr.tail(_UPDATE_SIZE))
        self._on_update(text_result(text, f"{stdout.total + stderr.total:,} bytes so far"))


def _result(output: CodeOutput, outcome: CodeOutcome, timeout_s: float) -> ToolResult:
    answer = outcome.answer
    trace = _clean(answer.trace) if answer is not None else ""
    value = _clean(answer.value) if answer is not None and answer.value is not None else ""
    printed = _joined(output.stdout.text(), output.stderr.text())
    summary = _summary(outcome, timeout_s)
    is_error = outcome.end != "done" or bool(trace)
    details: JsonObject = {
        "duration_ms": round(outcome.seconds * 1000),
        "stdout_file": str(output.stdout.file) if output.stdout.file else None,
        "stderr_file": str(output.stderr.file) if output.stderr.file else None,
    }
    parts = (*_remarks(outcome, timeout_s), printed, trace, value)
    text = "\n".join(part for part in parts if part)
    if is_error:
        details["last_lines"] = _last_lines("\n".join(part for part in (printed, trace or summary) if part))
    pictures = answer.pictures if answer is not None else ()
    images = (Image("image/png", picture.data, name=_clean(picture.name)[:60]) for picture in pictures)
    return ToolResult((Text(text or "(no output)"), *images), details, summary, is_error=is_error)


def _remarks(outcome: CodeOutcome, timeout_s: float) -> list[str]:
    remarks = [f"[{outcome.news}]"] if outcome.news else []
    survived = "the session goes on with its variables" if outcome.survived else f"it was ended: {GONE}"
    match outcome.end:
        case "timeout":
            remarks.append(f"[interrupted after {timeout_s:g} s; {survived}]")
        case "cancelled":
            remarks.append(f"[Operation aborted; {survived}]")
        case "died":
            code = outcome.exit_code
            how = "ended" if code is None else f"ended with exit code {code}" if code >= 0 else f"was {exit_text(code)}"
            remarks.append(f"[the process of the session {how}: {GONE}. The next call starts a new one]")
        case "done":
            pass
    if outcome.answer is not None:
        remarks += [f"[{_clean(remark)[:300]}]" for remark in outcome.answer.remarks[:_MAX_NAMES]]
    if outcome.limit_remark:
        remarks.append(outcome.limit_remark)
    if outcome.not_kept:
        names = ", ".join(map(clean_name, outcome.not_kept[:_MAX_NAMES]))
        remarks.append(
            f"[not kept: {names}. Code in the sandbox cannot make files that configure git, editors or agents: use the "
            "file tools, which ask the person]"
        )
    return remarks


def _summary(outcome: CodeOutcome, timeout_s: float) -> str:
    answer = outcome.answer
    match outcome.end:
        case "timeout":
            return f"Timed out after {timeout_s:g} s"
        case "cancelled":
            return "Operation aborted"
        case "died":
            return "the session ended"
        case "done":
            pass
    if answer is None:
        return ""
    if answer.error:
        return _clean(answer.error).partition("\n")[0][:120]
    count = len(answer.pictures)
    if count:
        return f"{count} {'picture' if count == 1 else 'pictures'}"
    return _clean(answer.value).partition("\n")[0][:120] if answer.value is not None else ""


def _clean(text: str) -> str:
    """Return what the process says, within bounds: its code can say anything in the name of the session."""
    cleaned = clean_output(text[:_MAX_CLEANED].encode("utf-8", "replace"))
    if len(cleaned) <= _MAX_RESULT_LENGTH:
        return cleaned
    half = _MAX_RESULT_LENGTH // 2
    return f"{cleaned[:half]}\n[… {len(cleaned) - 2 * half:,} characters left out …]\n{cleaned[-half:]}"


def _joined(stdout: str, stderr: str) -> str:
    out, err = stdout.rstrip("\n"), stderr.rstrip("\n")
    return "\n".join(part for part in (out, f"[stderr]\n{err}" if err else "") if part)


def _last_lines(text: str) -> list[JsonValue]:
    lines = [line for line in text.split("\n") if line.strip()]
    return [line[-_MAX_LINE_LENGTH:] for line in lines[-_LAST_LINES:]]
