"""Tool calls and their diffs as lines."""

from collections.abc import Iterator

from errand.cli.terminal.style import Style
from errand.cli.terminal.text import columns, cut, escape_hidden, one_line, short_path, wrapped
from errand.client.number_format import duration
from errand.client.safe_text import escape_hidden_line, output_text
from errand.client.texts.tasks import todo_text
from errand.client.texts.tool_calls import without_file_names
from errand.protocol.blocks import CallDisplay, ImageBlock, ResultFacts, ToolCallBlock, ToolResultBlock
from errand.protocol.tasks.groups import TodoItem
from errand.text.translation import tr

MAX_LINES = 40

_LAST_LINES = 3
_MAX_REASON_LENGTH = 400
_MAX_TODO_ITEMS = 12


def diff_lines(diff: str, width: int, style: Style) -> list[str]:
    """Return the changed lines with their context, truncated if long; the line of the call names the file."""
    room = max(12, width - 4)
    lines = [_colored(line, cut(line, room), style) for line in _lines(diff)]
    if len(lines) > MAX_LINES:
        left_out = len(lines) - MAX_LINES
        return [*lines[:MAX_LINES], style.dim(tr("    … {left_out:,} more lines").format(left_out=left_out))]
    return lines


def full_diff_lines(diff: str, style: Style, width: int) -> list[str]:
    """Return the full diff, for a person who is asked to allow it; continuation lines stay indented."""
    room = max(12, width - 5)
    return [_colored(line, piece, style) for line in _lines(diff) for piece in _pieces(line, room)]


def _pieces(line: str, room: int) -> list[str]:
    rest = [f" {line[at : at + room]}" for at in range(room, len(line), room)]
    return [line[:room], *rest]


def _lines(diff: str) -> list[str]:
    lines = without_file_names(escape_hidden(diff)).split("\n")
    return [line.expandtabs(4) for line in _without_first_hunk_mark(lines) if line]


def _without_first_hunk_mark(lines: list[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        if number or not line.startswith("@@"):
            yield line


def _colored(line: str, shown: str, style: Style) -> str:
    """Return the shown part of a line, in the line's color."""
    text = f"    {shown}".rstrip()
    if line.startswith("+"):
        return style.green(text)
    if line.startswith("-"):
        return style.red(text)
    return style.dim(text)


def _verb_and_target(display: CallDisplay, verb: str, width: int, style: Style) -> str:
    """Return the verb and its target, truncated to `width` columns."""
    target = escape_hidden_line(display.target)
    short = one_line(short_path(target) if display.target_is_path else target, max(8, width))
    return f"{verb} {style.bold(f'`{short}`')}" if short else verb


def format_running(call: ToolCallBlock, width: int, style: Style) -> str:
    verb = escape_hidden_line(tr(call.display.running))
    return _verb_and_target(call.display, verb, width - len(verb) - 12, style)


def format_result(
    call: ToolCallBlock | None,
    result: ToolResultBlock,
    width: int,
    style: Style,
    *,
    with_diff: bool = True,
    with_output: bool = True,
) -> str:
    """One line for a finished call; below it the diff, or the end of a failed command's output, and the pictures."""
    display = call.display if call else _generic_display(result)
    sign = style.red(style.sign("cross")) if result.is_error else style.green(style.sign("dot"))
    facts = result.facts or ResultFacts()
    time = duration(facts.duration_ms / 1000) if facts.duration_ms is not None else ""
    was_run = not result.is_error or result.facts is not None
    # A refused call, or one that could not start, was not done.
    verb = escape_hidden_line(tr(display.done if was_run else display.running))
    shows_output = with_output and result.is_error and was_run and display.shows_output_end
    reason = one_line(
        result.summary or (result.text if result.is_error and not shows_output else ""), _MAX_REASON_LENGTH
    )
    is_reason = result.is_error and columns(reason) > max(20, width // 2)  # a sentence: below the line, whole
    outcome = "" if is_reason else cut(reason, max(20, width // 2))
    head = _verb_and_target(display, verb, width - len(verb) - len(outcome) - len(time) - 12, style)
    tail = style.red(outcome) if result.is_error else style.dim(outcome)
    line = style.join(f"{sign} {head}", tail, style.dim(time))
    below = [style.red(f"    {row}") for row in wrapped(reason, width - 5).splitlines()] if is_reason else []
    below += diff_lines(facts.diff, width, style) if with_diff else []
    if shows_output:
        below += [style.dim(f"    {one_line(text, width - 5)}") for text in _last_lines(result.text, facts)]
    below += [style.dim(f"    {_picture_line(image)}") for image in result.images]
    return "\n".join([line, *below])


def _picture_line(image: ImageBlock) -> str:
    """Return the name of a picture and its file, which most terminals open by a click."""
    name = one_line(image.name, 60) or tr("picture")
    return f"{name}: {escape_hidden_line(image.path)}" if image.path else name


def _generic_display(result: ToolResultBlock) -> CallDisplay:
    """Return the display of a call that was before the shown events."""
    return CallDisplay(
        kind="other",
        running=tr("using {tool}").format(tool=result.tool),
        done=tr("used {tool}").format(tool=result.tool),
    )


def _last_lines(text: str, facts: ResultFacts) -> list[str]:
    """Return the end of a failed command's output; for an older result that of its text."""
    lines = output_text(text if facts.last_lines is None else "\n".join(facts.last_lines)).splitlines()
    return [line for line in lines if line.strip()][-_LAST_LINES:]


def todo_lines(items: tuple[TodoItem, ...], before: tuple[TodoItem, ...], style: Style, width: int) -> list[str]:
    """Return the progress, and the items that `before` does not have, as a checklist; the first of a long list."""
    unchanged = set(before)
    new = [item for item in items if item not in unchanged]
    lines = [style.dim(tr("  plan: {items}").format(items=todo_text(items)) if items else tr("  the plan was removed"))]
    lines += (_todo_line(item, style, width) for item in new[:_MAX_TODO_ITEMS])
    return (
        [*lines, style.dim(tr("    … {new} more").format(new=len(new) - _MAX_TODO_ITEMS))]
        if len(new) > _MAX_TODO_ITEMS
        else lines
    )


def _todo_line(item: TodoItem, style: Style, width: int) -> str:
    text = one_line(escape_hidden_line(item.text), max(12, width - 6))
    match item.status:
        case "done":
            return f"  {style.green(style.sign('tick'))} {style.dim(text)}"
        case "in_progress":
            return f"  {style.blue(style.sign('now'))} {style.bold(text)}"
        case "pending":
            return f"  {style.sign('open')} {text}"
