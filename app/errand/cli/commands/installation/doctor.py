"""`errand doctor` and `errand engine`: checks the installation with advice; shuts down a running engine."""

import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from errand.cli.arguments import UsageError
from errand.cli.command import Command
from errand.cli.commands.models import NO_MODELS_TEXT, format_ready
from errand.cli.exit_codes import CommandError
from errand.cli.options import CommandOptions, Flag, Option
from errand.cli.output import CommandOutput
from errand.cli.recovery.database_check import check_database
from errand.cli.recovery.database_server import check_server, server_url
from errand.cli.recovery.repair import RepairOptions, repair
from errand.cli.terminal.style import PLAIN
from errand.cli.terminal.text import wrapped
from errand.client.connection import Connection
from errand.client.errors import CallError, ConnectionLost, LaunchError, NoEngine
from errand.client.launch import connect, has_engine
from errand.client.number_format import file_size
from errand.client.shutdown import shut_down
from errand.client.texts.embedding_model import download_text, multilingual_text, offer_text
from errand.client.texts.task_options import sandbox_text
from errand.protocol.base import EmptyParams
from errand.protocol.data import DATA_SUMMARY
from errand.protocol.engine import (
    ENGINE_ROTATE_TOKEN,
    ENGINE_SHUTDOWN,
    ENGINE_STATUS,
    EngineShutdownParams,
    EngineStatusResult,
)
from errand.protocol.memory import MEMORY_STATS, MemoryStatsParams
from errand.protocol.settings import MODEL_LIST, ModelListParams
from errand.system.paths import Paths
from errand.text.translation import marked, tr, trn

_STALL_REPORTED_S = 7 * 86_400
_MAX_LINE_LENGTH = 500
_INDENT = 15

FindingState: TypeAlias = Literal["good", "could_be_better", "bad"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. `advice` says what to do; `bad` means that Errand cannot work."""

    state: FindingState
    subject: str
    text: str
    advice: str = ""


class DoctorOptions(CommandOptions, frozen=True, kw_only=True):
    repair: Annotated[bool, Flag("--repair", "repair a damaged database; the damaged file is kept")] = False
    how: RepairOptions = RepairOptions()


async def doctor(options: DoctorOptions, paths: Paths, output: CommandOutput) -> int:
    """Print the findings; returns 1 if something required is missing. With `repair` mend the database instead."""
    if options.repair:
        return await repair(options.how, paths, output)
    findings: list[Finding] = []
    for finding in _local_findings(paths):
        findings.append(finding)
        _print(finding, output)
    for finding in [*await _engine(paths), *_last_stall(paths)]:
        findings.append(finding)
        _print(finding, output)
    bad = sum(finding.state == "bad" for finding in findings)
    output.line()
    verdict = _verdict(bad, sum(finding.state == "could_be_better" for finding in findings))
    output.line(wrapped(verdict, output.width))
    return 1 if bad else 0


def _verdict(bad: int, could_be_better: int) -> str:
    if bad:
        return trn("{n} of these must be fixed.", "{n} of these must be fixed.", bad)
    if could_be_better:
        return trn(
            "Errand works. {n} line with ! could be better.",
            "Errand works. {n} lines with ! could be better.",
            could_be_better,
        )
    return tr("Everything is set up.")


DOCTOR = Command(DoctorOptions, doctor, json_help=marked("print the findings as JSON lines"))


def _print(finding: Finding, output: CommandOutput) -> None:
    style = output.style
    sign = {
        "good": style.green(style.sign("tick")),
        "could_be_better": style.amber(style.sign("warn")),
        "bad": style.red(style.sign("cross")),
    }[finding.state]
    first, *more = wrapped(finding.text, output.width - _INDENT).splitlines()
    advice = map(style.dim, wrapped(finding.advice, output.width - _INDENT).splitlines())
    details = [f"{'':<{_INDENT}}{line}" for line in (*more, *advice)]
    output.result(finding, f"{sign} {finding.subject:<{_INDENT - 3}} {first}", *details)


def _local_findings(paths: Paths) -> Iterator[Finding]:
    yield _python()
    yield _packages()
    yield _folder(paths.home)
    url = server_url(paths)
    yield Finding(*(check_server(url) if url else check_database(paths.database, paths.copies)))
    yield _keyring()
    yield _program("git", "could_be_better", tr("Install git: agents use it to look at changes."))
    yield _program(
        "bash", "bad" if sys.platform != "win32" else "could_be_better", tr("Install bash: commands run in it.")
    )
    if sys.platform == "linux":
        yield _program("bwrap", "could_be_better", tr("Install bubblewrap: commands of agents run in its sandbox."))
    yield _program("rg", "could_be_better", tr("Install ripgrep: agents search faster with it."))


def _python() -> Finding:
    return Finding(
        "good", "Python", tr("{split} at {executable}").format(split=sys.version.split()[0], executable=sys.executable)
    )


def _packages() -> Finding:
    """Checks the packages that this distribution requires."""
    try:
        names = _required_here(requires("errand-desktop") or ())
    except PackageNotFoundError:
        return Finding("bad", "packages", tr("Errand is not installed here"), tr("Run: make setup"))
    missing = [name for name in names if not _is_installed(name)]
    if missing:
        return Finding(
            "bad", "packages", tr("missing: {names}").format(names=", ".join(missing)), tr("Run: make setup")
        )
    return Finding(
        "good",
        "packages",
        tr("errand-desktop {version} and its {names} dependencies").format(
            version=version("errand-desktop"), names=len(names)
        ),
    )


def _required_here(lines: Iterable[str]) -> list[str]:
    """Return the names of the packages that are required on this system without extras."""
    from packaging.requirements import Requirement

    requirements = map(Requirement, lines)
    return [item.name for item in requirements if item.marker is None or item.marker.evaluate({"extra": ""})]


def _is_installed(name: str) -> bool:
    try:
        return bool(version(name))
    except PackageNotFoundError:
        return False


def _folder(home: Path) -> Finding:
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe = home / ".doctor"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        return Finding(
            "bad", "data", f"{home}: {error.strerror}", tr("Make it writable, or set ERRAND_HOME to a folder.")
        )
    free = shutil.disk_usage(home).free
    text = tr("{home}, {free} free").format(home=home, free=file_size(free))
    if free < 100_000_000:
        return Finding("bad", "data", text, tr("Free up disk space: Errand saves nothing with less than 0.1 GB."))
    if free < 500_000_000:
        return Finding("could_be_better", "data", text, tr("Free up disk space: less than 0.5 GB is left."))
    if sys.platform != "win32" and home.stat().st_mode & 0o077:
        return Finding(
            "could_be_better",
            "data",
            tr("{home} can be read by other users").format(home=home),
            tr("Run: chmod 700 {home}").format(home=home),
        )
    return Finding("good", "data", text)


def _keyring() -> Finding:
    none = Finding("could_be_better", "keyring", tr("none; stored keys go to an encrypted file in the data directory"))
    if sys.platform == "linux" and not {"DBUS_SESSION_BUS_ADDRESS", "PYTHON_KEYRING_BACKEND"} & os.environ.keys():
        return none  # nothing could answer, and to look for all kinds of keyrings takes 0.2 s
    import keyring
    from keyring.backends.fail import Keyring as NoKeyring

    backend = keyring.get_keyring()
    if isinstance(backend, NoKeyring):
        return none
    return Finding("good", "keyring", str(backend.name))


def _program(name: str, if_missing: FindingState, advice: str) -> Finding:
    path = shutil.which(name)
    return Finding("good", name, path) if path else Finding(if_missing, name, tr("not found"), advice)


async def _engine(paths: Paths) -> list[Finding]:
    """Connect to the engine, starting one if none runs, and ask it for models and keys."""
    try:
        connection, was_running = await _connect(paths)
    except LaunchError as error:
        return [
            Finding("bad", "engine", error.reason, error.details or tr("Its log is in {logs}.").format(logs=paths.logs))
        ]
    except ConnectionLost as error:
        return [Finding("bad", "engine", str(error), tr("Its log is in {logs}.").format(logs=paths.logs))]
    try:
        status = await connection.call(ENGINE_STATUS, EmptyParams())
        records = await _records_on_server(connection) if server_url(paths) else []
        sandbox = [_sandbox_finding(status), _limits_finding()]
        answers = [await _models(connection), await _search_by_meaning(connection)]
        return [_engine_finding(status, was_running), *records, *sandbox, *answers]
    except (CallError, ConnectionLost) as error:
        return [Finding("bad", "engine", str(error), tr("Its log is in {logs}.").format(logs=paths.logs))]
    finally:
        if not was_running:
            await connection.call(ENGINE_SHUTDOWN, EngineShutdownParams())
        await connection.close()


def _last_stall(paths: Paths) -> Iterator[Finding]:
    """Reports a stalled engine for a week."""
    try:
        age_s = time.time() - paths.last_stall.stat().st_mtime
        with paths.last_stall.open(encoding="utf-8", errors="replace") as file:
            text = file.readline(_MAX_LINE_LENGTH).strip()
    except OSError:
        return
    if age_s < _STALL_REPORTED_S:
        yield Finding(
            "could_be_better",
            "stall",
            text,
            tr("Please report it, with {last_stall}.").format(last_stall=paths.last_stall),
        )


async def _connect(paths: Paths) -> tuple[Connection, bool]:
    try:
        return await connect(paths, "errand doctor", start=False), True
    except NoEngine:
        return await connect(paths, "errand doctor"), False


def _sandbox_finding(status: EngineStatusResult) -> Finding:
    sandbox = status.sandbox
    state = "good" if sandbox.form == "bubblewrap" else "could_be_better"
    return Finding(state, "sandbox", sandbox_text(sandbox), sandbox.advice)


def _limits_finding() -> Finding:
    return Finding("good", "limits", tr("processes of commands have a limit (setting max_processes), memory has none"))


def _engine_finding(status: EngineStatusResult, was_running: bool) -> Finding:
    memory = f"{status.memory_bytes / 1e6:.0f} MB"
    if not was_running:
        return Finding("good", "engine", tr("not running; it starts and responds ({memory})").format(memory=memory))
    return Finding(
        "good",
        "engine",
        tr("running, pid {pid}, {memory}, {tasks}").format(
            pid=status.pid, memory=memory, tasks=trn("{n} task", "{n} tasks", status.running_tasks)
        ),
    )


async def _records_on_server(connection: Connection) -> list[Finding]:
    parts = (await connection.call(DATA_SUMMARY, EmptyParams())).parts
    return [
        Finding(
            "good",
            "records",
            tr("{bytes} in the database {server}").format(bytes=file_size(part.bytes), server=part.server),
        )
        for part in parts
        if part.server
    ]


async def _models(connection: Connection) -> Finding:
    """Names of variables and addresses only: a key is never shown."""
    models = await connection.call(MODEL_LIST, ModelListParams(refresh=True))
    if models.default is None:
        return Finding("could_be_better", "models", tr("none set up"), NO_MODELS_TEXT)
    return Finding(
        "good", "models", tr("default {default}").format(default=models.default), "\n".join(format_ready(models, PLAIN))
    )


async def _search_by_meaning(connection: Connection) -> Finding:
    stats = await connection.call(MEMORY_STATS, MemoryStatsParams())
    model = stats.model
    match model.status:
        case "ready":
            advice = multilingual_text() if stats.other_languages else ""
            return Finding("good", "memory", tr("searched by meaning and words"), advice)
        case "downloading":
            return Finding("good", "memory", download_text(model))
        case "missing" if model.reason:
            how = tr("searched by meaning with a simple model") if model.has_simple else tr("searched by words alone")
            return Finding("could_be_better", "memory", how, model.reason)
        case "missing" | "failed":
            text = offer_text(model) if model.has_simple else f"{tr('searched by words alone.')} {offer_text(model)}"
            return Finding("good", "memory", text, model.reason or tr("To get it: errand memory download"))


class EngineOptions(CommandOptions, frozen=True, kw_only=True):
    port: Annotated[int, Option("--port", "port on 127.0.0.1 (default: any free one)")] = 0
    stop: Annotated[bool, Flag("--stop", "shut down the running engine")] = False
    rotate_token: Annotated[
        bool, Flag("--rotate-token", "replace the access token of the running engine; the old one stops working")
    ] = False


async def manage_engine(options: EngineOptions, paths: Paths, output: CommandOutput) -> int:
    if not options.stop and not options.rotate_token:
        raise UsageError(tr("--json needs --stop or --rotate-token: an engine itself runs until it is shut down."))
    return await (_rotate_token if options.rotate_token else _stop)(paths, output)


async def _rotate_token(paths: Paths, output: CommandOutput) -> int:
    if not has_engine(paths):
        text = tr("No engine is running. The next one gets a new token.")
        output.result({"rotated": False}, text)
        return 0
    async with await connect(paths, "errand engine --rotate-token") as connection:
        await connection.call(ENGINE_ROTATE_TOKEN, EmptyParams())
    text = tr("The engine has a new access token. All other clients were disconnected and must read it again.")
    output.result({"rotated": True}, text)
    return 0


async def _stop(paths: Paths, output: CommandOutput) -> int:
    match ending := await shut_down(paths, "errand engine --stop"):
        case "none":
            text = tr("No engine is running.")
        case "ended":
            text = tr("The engine has ended.")
        case "killed":
            text = tr("The engine did not respond and was killed. Its tasks can be resumed.")
        case "left":
            raise CommandError(
                tr("the engine does not respond and cannot be killed: it waits for a disk or the network.")
            )
    output.result({"engine": ending}, text)
    return 0


ENGINE = Command(
    EngineOptions,
    manage_engine,
    json_help=marked("print the result as one JSON object"),
)
