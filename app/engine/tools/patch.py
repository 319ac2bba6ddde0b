"""Replacing an exact piece of a text; where it does not fit, an error that helps to try again."""

from app.engine.tools.base import ToolError
from app.engine.tools.close_match import close_matches

_MOST_LINES = 20_000
_SHOWN = 12
_LONGEST_SHOWN = 2_000


def replace_exactly(text: str, old: str, new: str, replace_all: bool, name: str) -> str:
    """The text with `old` replaced; a ToolError unless it is there exactly once, or `replace_all` is set."""
    if not old:
        raise ToolError("`old` is empty: give the text to replace, or use the action write for a whole file.")
    if old == new:
        raise ToolError("`old` and `new` are the same: there is nothing to change.")
    count = text.count(old)
    if count == 0:
        raise ToolError(f"`old` was not found in {name}. {_nearest(text, old)}", "text to replace not found")
    if count > 1 and not replace_all:
        raise ToolError(
            f"`old` was found {count} times in {name}, at lines {_places(text, old)}. Give more of the lines around "
            "the place you mean, or set replace_all.",
            f"text to replace found {count} times",
        )
    return text.replace(old, new)


def _places(text: str, old: str) -> str:
    places: list[str] = []
    at = text.find(old)
    while at >= 0 and len(places) < 10:
        places.append(str(text.count("\n", 0, at) + 1))
        at = text.find(old, at + len(old))
    return ", ".join(places) + (", …" if at >= 0 else "")


def _nearest(text: str, old: str) -> str:
    """Where it may have been meant: the line most like its first one that is not blank."""
    wanted = old.split("\n")
    lead = next((index for index, line in enumerate(wanted) if line.strip()), 0)
    lines = text.split("\n", _MOST_LINES)[:_MOST_LINES]
    close = close_matches(wanted[lead].strip(), [line.strip() for line in lines], 1)
    if not close:
        return "Nothing there is like it: read the file again."
    first = max(0, close[0] - lead)
    shown = lines[first : first + min(len(wanted), _SHOWN)]
    same = [line.split() for line in shown] == [line.split() for line in wanted]
    hint = "It differs in white space only." if same else "Copy the text exactly, blanks and all."
    body = "\n".join(line if len(line) <= _LONGEST_SHOWN else f"{line[:_LONGEST_SHOWN]}…" for line in shown)
    return f"{hint} The nearest place is line {first + 1}:\n{body}"
