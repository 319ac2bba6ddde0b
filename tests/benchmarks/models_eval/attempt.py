"""One attempt at a task: an engine, a home and a folder of its own, and the task through `errand run --json`."""

import asyncio
import signal
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from errand.protocol.conversations import Node
from tests.benchmarks.models_eval.calls import count_calls
from tests.benchmarks.models_eval.model import EvaluatedModel
from tests.benchmarks.models_eval.results import EvalRow
from tests.benchmarks.models_eval.task import EvalTask, Outcome, Run, RunEnd, read_files, write_files
from tests.support.command_line import Errand
from tests.support.provider_servers import NO_LOCAL_SERVERS

# Between the stop of a task that takes too long and the end of the command by force.
_GRACE_S = 30.0


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one task: turns of each message, and seconds of all; and the temperature of its personality."""

    turns: int
    seconds: float
    temperature: str = "0"


class _NodeEvent(msgspec.Struct, frozen=True):
    """A `taskMessage` among the events of `errand run --json`; other events have no node."""

    node: Node | None = None


class _EventParams(msgspec.Struct, frozen=True):
    event: _NodeEvent = _NodeEvent()


class _Line(msgspec.Struct, frozen=True):
    """A line of `errand run --json`."""

    type: str = ""
    params: _EventParams = _EventParams()


async def attempt(task: EvalTask, model: EvaluatedModel, limits: Limits, transcripts: Path | None) -> EvalRow:
    """Run the task, judge it and count; what was said goes into a file of its name in `transcripts`."""
    with tempfile.TemporaryDirectory(prefix="errand-eval-") as root:
        folder, home = _make_folders(Path(root), task)
        errand = Errand(Path(root, "data"), folder)
        errand.environment |= {"HOME": str(home), "OPENAI_COMPATIBLE_API_KEY": model.key, **NO_LOCAL_SERVERS}
        # With bytecode, a program that was changed within a second, and not in its size, runs as it was before.
        errand.environment["PYTHONDONTWRITEBYTECODE"] = "1"
        try:
            await errand.run("personalities", "edit", "assistant", "--temperature", limits.temperature)
            for fact in task.facts:
                await errand.run("memory", "pin", fact)
            began = time.monotonic()
            outcome, lines = await _send_messages(task, errand, model, limits, began)
            seconds = time.monotonic() - began
            if transcripts is not None:
                await _keep_transcript(transcripts / f"{task.name}.txt", errand, outcome, lines)
        finally:
            await errand.close()
        return _row(task, model, outcome, seconds)


def _make_folders(root: Path, task: EvalTask) -> tuple[Path, Path]:
    """Make the folder of the task, with its files, and a home."""
    folder, home = root / "work", root / "home"
    folder.mkdir()
    home.mkdir()
    write_files(folder, task.files)
    return folder, home


async def _send_messages(
    task: EvalTask, errand: Errand, model: EvaluatedModel, limits: Limits, began: float
) -> tuple[Outcome, list[str]]:
    """Send the messages one after the other; returns the outcome and all lines of JSON."""
    runs: list[Run] = []
    lines: list[str] = []
    after_first: dict[str, str] = {}
    for message in task.messages:
        left_s = limits.seconds - (time.monotonic() - began)
        if left_s <= 0:
            break
        target = ("--conversation", runs[-1].end.conversation_id) if runs else ()
        options = ("--model", model.name, "--api-base", model.api_base, "--max-turns", str(limits.turns))
        command = ("run", "--json", "--approve", "all", *options, *target, *task.options, message)
        process = await errand.start(*command)
        out, err = await _output(process, left_s)
        lines += out.splitlines() + err.splitlines()
        runs.append(read_run(out))
        after_first = after_first or read_files(errand.folder)
        if runs[-1].end.stop_reason is None:
            break
    return Outcome(errand.folder, tuple(runs), after_first), lines


async def _output(process: asyncio.subprocess.Process, seconds: float) -> tuple[str, str]:
    """Return what the command writes; if it does not end in time, stop its task, then the command."""
    communication = asyncio.ensure_future(process.communicate())
    for end in (lambda: process.send_signal(signal.SIGINT), process.kill):
        ended, _ = await asyncio.wait((communication,), timeout=seconds)
        if ended:
            break
        end()
        seconds = _GRACE_S
    out, err = await communication
    return (out or b"").decode(), (err or b"").decode()


def read_run(output: str) -> Run:
    """Read what `errand run --json` printed. A node that came twice counts once, as it was last."""
    nodes: dict[str, Node] = {}
    end = RunEnd()
    for line in output.splitlines():
        message = msgspec.json.decode(line, type=_Line)
        node = message.params.event.node
        if message.type == "result":
            end = msgspec.json.decode(line, type=RunEnd)
        elif node is not None and node.status != "streaming":
            nodes[node.id] = node
    return Run(tuple(nodes.values()), end)


def _row(task: EvalTask, model: EvaluatedModel, outcome: Outcome, seconds: float) -> EvalRow:
    is_solved = bool(outcome.runs) and task.judge(outcome)
    counts = count_calls(outcome.runs)
    nodes = [node for run in outcome.runs for node in run.nodes]
    usages = [node.usage for node in nodes if node.usage is not None]
    end = outcome.runs[-1].end if outcome.runs else RunEnd()
    return EvalRow(
        task=task.name,
        model=model.name,
        solved=is_solved,
        meant=counts.meant,
        well_formed=counts.well_formed,
        run=counts.run,
        worked=counts.worked,
        false_claim=end.exit_code == 0 and not is_solved,
        has_tick=end.has_tick,
        turns=sum(run.end.turns for run in outcome.runs),
        prompt_tokens=sum(usage.input_tokens for usage in usages),
        cached_tokens=sum(usage.cache_read_tokens for usage in usages),
        completion_tokens=sum(usage.output_tokens for usage in usages),
        seconds=round(seconds, 1),
        end=_end_text(end),
        answer=outcome.answer,
    )


def _end_text(end: RunEnd) -> str:
    """Name the end in a word or two: `declared`, `replied`, `iteration_limit`, `error` …"""
    if end.stop_reason == "completed":
        marks = end.marks if end.completion in ("declared", "replied") else ()
        return ", ".join((end.completion or "completed", *marks))
    return end.stop_reason or "no end"


async def _keep_transcript(file: Path, errand: Errand, outcome: Outcome, lines: list[str]) -> None:
    """Write what `errand show` prints, the system prompt, the nodes, and what the commands wrote but events."""
    parts: list[str] = []
    for conversation_id in {node.conversation_id for run in outcome.runs for node in run.nodes}:
        parts.append((await errand.run("show", conversation_id)).out)
        parts.append((await errand.run("prompt", conversation_id)).out)
    parts += [_node_line(node) for run in outcome.runs for node in run.nodes]
    parts += [line for line in lines if not line.startswith('{"method"')]
    await asyncio.to_thread(_write, file, "\n".join(parts))


def _node_line(node: Node) -> str:
    return f"{node.role}: {msgspec.json.encode(node.blocks).decode()}"


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
