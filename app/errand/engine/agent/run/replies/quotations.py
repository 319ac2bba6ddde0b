"""Whether a place in a Markdown text lies in a quotation: a code block, a code span, or a quoted line."""

import re

# Also in lists and quoted lines.
_FENCE_LINE = re.compile(r"[ \t>]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)*+(?P<marks>`{3,}+|~{3,}+)(?P<rest>.*)", re.DOTALL)
_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")
_BACKTICKS = re.compile(r"\\`|`++")
_INDENTED = re.compile(r"(?: {4}|\t)\s*\Z")


def ends_in_quotation(text: str) -> bool:
    """Return True if what follows this text is quoted, also by a fence or span whose end may be missing."""
    lines, open_marks, paragraph_start = text.split("\n"), "", 0
    for number, line in enumerate(lines):
        fence = _FENCE_LINE.match(line)
        if fence is None:
            continue
        marks, rest = fence["marks"], fence["rest"]
        if not open_marks and not (marks[0] == "`" and "`" in rest):
            open_marks = marks
        elif open_marks and marks.startswith(open_marks) and not rest.strip():
            open_marks, paragraph_start = "", number + 1
    if open_marks:
        return True
    last_line = lines[-1]
    paragraph = _BLANK_LINE.split("\n".join(lines[paragraph_start:]))[-1]
    return last_line.lstrip().startswith(">") or _INDENTED.match(last_line) is not None or _ends_in_span(paragraph)


def _ends_in_span(paragraph: str) -> bool:
    open_run = ""
    for run in _BACKTICKS.findall(paragraph):
        if not open_run and not run.startswith("\\"):
            open_run = run
        elif open_run and run.lstrip("\\") == open_run:
            open_run = ""
    return bool(open_run)
