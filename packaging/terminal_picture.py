"""Draws a terminal as SVG: `FORCE_COLOR=1 errand tour | python packaging/terminal_picture.py > tour.svg`."""

import re
import sys
from html import escape

_COLOURS = {"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "34": "#79c0ff", "35": "#d2a8ff", "36": "#56d4dd"}
_STYLES = {"1": "font-weight:bold", "2": "opacity:.62"}
_PART = re.compile(r"\x1b\[([\d;]*)m")
_CELL, _LINE, _EDGE = 8.4, 20, 18


def draw(text: str, home: str = "") -> str:
    """The text with its colours on a dark card; `home` is left out of what it shows."""
    lines = text.replace(home, "~" if home else "").rstrip("\n").split("\n")
    width = max(len(_PART.sub("", line)) for line in lines) * _CELL + 2 * _EDGE
    height = len(lines) * _LINE + 2 * _EDGE
    rows = [_row(line, _EDGE + (number + 0.75) * _LINE) for number, line in enumerate(lines)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
            "<title>A run of the guided tour in a terminal</title>",
            '<rect width="100%" height="100%" rx="8" fill="#16181d"/>',
            '<g font-family="ui-monospace,Menlo,Consolas,DejaVu Sans Mono,monospace" font-size="14" fill="#d7dae0">',
            *rows,
            "</g></svg>",
        ]
    )


def _row(line: str, y: float) -> str:
    spans: list[str] = []
    pieces = _PART.split(line)
    for code, text in zip(["0", *pieces[1::2]], pieces[0::2], strict=True):
        if text:
            spans.append(f"<tspan{_look(code)}>{escape(text)}</tspan>")
    return f'<text x="{_EDGE}" y="{y:.0f}" xml:space="preserve">{"".join(spans)}</text>'


def _look(code: str) -> str:
    parts = code.split(";")
    fill = next((f' fill="{_COLOURS[part]}"' for part in parts if part in _COLOURS), "")
    style = ";".join(_STYLES[part] for part in parts if part in _STYLES)
    return fill + (f' style="{style}"' if style else "")


if __name__ == "__main__":
    sys.stdout.write(draw(sys.stdin.read(), sys.argv[1] if len(sys.argv) > 1 else "") + "\n")
