"""Tool calls in words: what runs, and what came of it, in one line each."""

from app.cli.diff import diff_lines
from app.cli.plain import one_line, short_path
from app.cli.style import Style
from app.client.call_words import CallWords, text_of, words_of
from app.client.characters import output_text
from app.client.figures import duration
from app.protocol.blocks import ToolCallBlock, ToolResultBlock
from app.protocol.json import JsonObject

_LAST_LINES = 3
CONTROL_TOOLS = frozenset({"task_complete", "ask_user", "send_update"})


def _shown(words: CallWords, tool: str, verb: str, width: int, style: Style) -> str:
    """The verb and what it is about, which is cut to `width` columns."""
    target = short_path(words.object) if tool == "code" and words.action != "search" else words.object
    short = one_line(target, max(8, width))
    return f"{verb} {style.bold(f'`{short}`')}" if short else verb


def running_line(tool: str, arguments: JsonObject, width: int, style: Style) -> str:
    words = words_of(tool, arguments)
    return _shown(words, tool, words.doing, width - len(words.doing) - 12, style)


def result_line(
    call: ToolCallBlock | None,
    result: ToolResultBlock,
    width: int,
    style: Style,
    *,
    with_diff: bool = True,
    with_output: bool = True,
) -> str:
    """One line for a finished call; below it the diff, or the end of a failed command's output."""
    words = words_of(result.tool, call.arguments if call else {})
    sign = style.red(style.sign("cross")) if result.is_error else style.green(style.sign("dot"))
    time = "" if result.summary.endswith(" s") else _time(result.details)
    was_run = not result.is_error or result.details is not None
    verb = words.done if was_run else words.doing  # what was refused or could not begin was not done
    outcome = one_line(result.summary or (result.text if result.is_error else ""), max(20, width // 2))
    head = _shown(words, result.tool, verb, width - len(verb) - len(outcome) - len(time) - 12, style)
    tail = style.red(outcome) if result.is_error else style.dim(outcome)
    line = style.join(f"{sign} {head}", tail, style.dim(time))
    below = diff_lines(text_of(result.details or {}, "diff"), width, style) if with_diff else []
    if with_output and result.is_error and was_run and result.tool == "shell":
        below += [style.dim(f"    {one_line(text, width - 5)}") for text in _last_lines(result.text)]
    return "\n".join([line, *below])


def _last_lines(text: str) -> list[str]:
    """The end of a failed command's output, where most programs say why; the tool's own remarks are in brackets."""
    lines = [line for line in output_text(text).splitlines() if line.strip() and not line.startswith("[")]
    return lines[-_LAST_LINES:]


def _time(details: JsonObject | None) -> str:
    spent = (details or {}).get("duration_ms")
    return duration(spent / 1000) if isinstance(spent, int | float) else ""
