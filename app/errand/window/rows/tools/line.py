"""The line of a tool call: an icon, what is done, on what, its outcome and its time. Pure."""

from dataclasses import replace
from datetime import UTC, datetime

from errand.client.conversation.rows import ToolCallRow
from errand.client.number_format import duration, money, running_time
from errand.client.safe_text import escape_hidden_line
from errand.client.texts.tasks import is_unfinished, neutral_text, tool_activity, unfinished_text
from errand.protocol.blocks import CallDisplay, ToolResultBlock
from errand.protocol.tasks.groups import CallProgress
from errand.protocol.tasks.task import Task
from errand.text.translation import tr, trn, uncapitalised
from errand.window.rows.asks.ask_card import settled_words
from errand.window.rows.disclosure import LinePart
from errand.window.widgets.labels import one_line

_SUMMARY = 90  # characters of the result shown in the line


def line_of(row: ToolCallRow) -> tuple[str, str, list[LinePart]]:
    """Icon, its colour, and the parts of the line: `ran make test · 12 passed · 1.2 s`."""
    display, result = row.call.display, row.result
    icon, target = display.icon, _target(display)
    is_running, done = escape_hidden_line(tr(display.running)), escape_hidden_line(tr(display.done))
    if row.sub_agent is not None and (
        row.sub_agent.outcome.ended_at is not None or result is None or not result.is_error
    ):
        return _sub_agent_line(row.sub_agent, icon, target)
    settled = [replace(part, drops=1) for ask in row.settled for part in _separated(settled_words(ask), "muted")]
    not_begun = target or [LinePart(is_running)]
    if row.state == "asks":
        asks = _separated(tr("waiting for your approval"), "waiting")
        return "shield-question-mark", "waiting_mark", [*not_begun, *asks]
    if row.state == "unknown":
        cut_off = [*_separated(tr("interrupted"), "muted"), *_separated(tr("outcome unknown"), "waiting")]
        return "triangle-alert", "waiting_mark", [*not_begun, *cut_off]
    if result is None:
        return _unfinished_line(row, icon, target, settled)
    if {"skipped", "stopped"} & set(result.marks):
        return _stopped_line(row, result, icon, target, settled)
    if any(ask.kind == "approval" and ask.status == "answered" and not ask.allowed for ask in row.settled):
        return "circle-x", "failed_mark", [*not_begun, *settled]
    if result.is_error:
        # A call that was refused or could not start was not done.
        called = [LinePart(done), *target] if result.facts is not None else not_begun
        outcome = _separated(one_line(result.summary or result.text, _SUMMARY), "failed")
        return "circle-x", "failed_mark", [*called, *outcome, *_time(result), *settled]
    return icon, "muted", [LinePart(done), *target, *_outcome(result), *_time(result), *settled]


def _unfinished_line(
    row: ToolCallRow, icon: str, target: list[LinePart], settled: list[LinePart]
) -> tuple[str, str, list[LinePart]]:
    """Return the line of a call that has no result yet, or will have none."""
    running = [LinePart(escape_hidden_line(tr(row.call.display.running))), *target]
    not_begun = target or running
    match row.state:
        case "interrupted":
            return icon, "muted", [*not_begun, *_separated(tr("task interrupted"), "muted"), *settled]
        case "dropped":
            return icon, "muted", [*not_begun, *_separated(tr("not run"), "muted")]
        case "pending":
            return icon, "muted", [*not_begun, *_separated(tr("waiting"), "muted"), *settled]
        case "ended":
            time = _separated(_elapsed(row.progress), "muted")
            return icon, "muted", [LinePart(escape_hidden_line(tr(row.call.display.done))), *target, *time, *settled]
        case _:
            time = _separated(_elapsed(row.progress), "muted")
            return icon, "link", [*running, *time, *settled]


def _stopped_line(
    row: ToolCallRow, result: ToolResultBlock, icon: str, target: list[LinePart], settled: list[LinePart]
) -> tuple[str, str, list[LinePart]]:
    """Return the line of a call that a stop or a message of a person prevented or ended: no failure of its own."""
    has_begun = result.facts is not None
    verb = LinePart(escape_hidden_line(tr(row.call.display.done if has_begun else row.call.display.running)))
    why = tr("skipped for your message") if "skipped" in result.marks else tr("stopped") if has_begun else tr("not run")
    begun = [verb, *target] if has_begun or not target else target
    return icon, "muted", [*begun, *_separated(why, "muted"), *_time(result), *settled]


def _elapsed(progress: CallProgress | None) -> str:
    """Return the time of a call that has begun, from a second on; a running one without fractions."""
    if progress is None:
        return ""
    seconds = ((progress.ended_at or datetime.now(UTC)) - progress.started_at).total_seconds()
    if seconds < 1:
        return ""
    return duration(seconds) if progress.ended_at is not None else running_time(seconds)


def _sub_agent_line(task: Task, icon: str, target: list[LinePart]) -> tuple[str, str, list[LinePart]]:
    """`Look at the parser · thinking · 3 steps · $0.02`."""
    title = [replace(part, mono=False) for part in target]
    state, tint = sub_agent_state(task)
    reason = (
        one_line(escape_hidden_line(task.outcome.error), _SUMMARY) if task.outcome.error and tint == "failed" else ""
    )
    counts = " · ".join(filter(None, (trn("{n} step", "{n} steps", task.progress.step_count), money(task.total_usage))))
    colour = "link" if task.outcome.ended_at is None else "muted"
    return (
        icon,
        colour,
        [*title, *_separated(state, tint), *_separated(reason, "failed"), *_separated(counts, "muted")],
    )


def sub_agent_state(task: Task) -> tuple[str, str]:
    """Return the state in words, and its colour."""
    if task.outcome.ended_at is not None:
        match task.activity.status:
            case "completed" if is_unfinished(task):
                return uncapitalised(unfinished_text(task)), "waiting"
            case "completed" if neutral := neutral_text(task):
                return uncapitalised(neutral), "muted"
            case "completed":
                return tr("done"), "done"
            case "cancelled":
                return tr("stopped"), "muted"
            case _:
                return tr("failed"), "failed"
    if task.activity.stopping:
        return tr("stopping"), "muted"
    if task.activity.status == "waiting_user":
        return tr("waiting for you"), "waiting"
    if task.activity.status == "tool_executing":
        return tool_activity(task), "muted"
    return tr("thinking") if task.activity.status == "thinking" else tr("working"), "muted"


def _target(display: CallDisplay) -> list[LinePart]:
    line = " ".join(escape_hidden_line(display.target).split())
    if line == ".":
        return [LinePart(tr("the workspace"), "text", elides=True)]
    return [LinePart(line, "text", mono=True, elides=True)] if line else []


def _outcome(result: ToolResultBlock) -> list[LinePart]:
    facts = result.facts
    if facts is None or facts.added is None or facts.removed is None:
        return _separated(one_line(result.summary, _SUMMARY), "muted")
    counts = [LinePart(f"+{facts.added}", "done")] if facts.added else []
    counts += [LinePart(f"−{facts.removed}", "failed")] if facts.removed else []
    return counts or _separated(tr("no changes"), "muted")


def _separated(text: str, tint: str) -> list[LinePart]:
    return [LinePart("·"), LinePart(text, tint, elides=True)] if text else []


def _time(result: ToolResultBlock) -> list[LinePart]:
    if result.facts is None or result.facts.duration_ms is None:
        return []
    return [LinePart("·", drops=2), LinePart(duration(result.facts.duration_ms / 1000), drops=2)]
