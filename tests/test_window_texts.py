"""Each text that the window shows goes through `tr` or `trn`, so that it can be translated."""

import ast
from collections.abc import Iterator
from pathlib import Path

_WINDOW = Path(__file__).parents[1] / "app" / "errand" / "window"
_SINKS = frozenset(
    {
        "setText",
        "setToolTip",
        "setPlaceholderText",
        "setWindowTitle",
        "setAccessibleName",
        "setAccessibleDescription",
        "setInformativeText",
        "set_tool_tip",
        "addAction",
        "addMenu",
        "addButton",
        "addRow",
        "QLabel",
        "TextLabel",
        "ElidedLabel",
        "TextView",
        "EmptyStateView",
        "IconButton",
        "push_button",
        "Action",
        "show_message",
        "show_line",
        "LinePart",
        "CodeExcerptView",
        "FolderChoiceView",
        "ProviderKind",
        "InvalidValue",
        "ask",
        "show_failure",
        "show_problem",
        "setHeaderData",
    }
)
# Names of things that are no words of ours: icons, looks, tones, keys, ids, and the names of programs and formats.
_NO_TEXTS = frozenset({"Errand", "Errand —", "— Errand", "Markdown", "Ctrl+C", "Esc", "uvx mcp-server-time"})


def _name(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _is_text(value: str) -> bool:
    """True for words of a sentence or a label: a capital with small letters, or several words."""
    parts = value.split()
    return bool(parts) and (value[0].isupper() or len(parts) > 1) and any(letter.islower() for letter in value)


def _bare(node: ast.expr) -> Iterator[str]:
    """The literals of an argument that no call wraps."""
    match node:
        case ast.Constant(str(value)):
            yield value
        case ast.JoinedStr(parts):
            yield " ".join(
                part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)
            )
        case ast.IfExp(body=body, orelse=otherwise):
            yield from _bare(body)
            yield from _bare(otherwise)
        case ast.BinOp(left=left, right=right):
            yield from _bare(left)
            yield from _bare(right)
        case _:
            return


def _untranslated() -> Iterator[str]:
    for file in sorted(_WINDOW.rglob("*.py")):
        source_path = file.relative_to(_WINDOW).as_posix()
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and _name(call) in _SINKS:
                for text in (text for argument in call.args for text in _bare(argument)):
                    if _is_text(text) and text.strip() not in _NO_TEXTS:
                        yield f"{source_path}:{call.lineno}: {text}"


def test_each_text_of_the_window_can_be_translated() -> None:
    assert list(_untranslated()) == []


def test_names_of_colours_and_marks_are_not_translated() -> None:
    """Translated, they are no names: `LinePart(text, colour)`, and sets of marks of results."""
    translated: list[str] = []
    for file in sorted(_WINDOW.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(ast.Name("LinePart" | "_separated"), [_, *names]) | ast.Set(names):
                    pass
                case ast.Call(ast.Attribute(attr="set_tone"), names) | ast.Compare(comparators=names):
                    pass
                case _:
                    continue
            if any(isinstance(name, ast.Call) and _name(name) == "tr" for name in names):
                translated.append(f"{file.relative_to(_WINDOW).as_posix()}:{node.lineno}")
    assert translated == []
