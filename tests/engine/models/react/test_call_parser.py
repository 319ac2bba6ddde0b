"""Parsing a reply: its call, shown and hidden text, with the same result however the stream is split."""

from collections.abc import Iterable
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as some

from errand.engine.core.messages import UNREADABLE_CALL
from errand.engine.models.react.call_parser import ToolCallText
from errand.engine.models.react.parser import (
    HiddenMarkup,
    InventedResult,
    ParsedCall,
    ParsedPiece,
    ReActParser,
    ShownText,
)

LIST = '<tool_code>\n<name>shell</name>\n<parameters>\n{"command": "ls"}\n</parameters>\n</tool_code>'
LISTED = ToolCallText("shell", '{"command": "ls"}')

# The parts of such replies, and what can break them.
SIGNS = (
    *("<tool_code>", "</tool_code>", "<name>", "</name>", "<parameters>", "</parameters>", "<observation>"),
    *("<final_answer>", "</final_answer>", "<", "<tool", "</", "<![CDATA[", "]]>", "&quot;", "&lt;"),
    *("{", "}", '"', "\\", ":", '{"a": 1}', '{"name": "shell"}', "NaN", "\ud800"),
    *("```", "```xml\n", "`", "\n", "\r\n", " ", " " * 70, "shell", "é🙂", "Done."),
)
# The text shown before the call, the call, and the text shown after it.
Shown: TypeAlias = tuple[str, list[ToolCallText], str]
replies = some.lists(some.sampled_from(SIGNS), max_size=30).map("".join) | some.text(max_size=200)


TEXTS: list[tuple[str, Shown]] = [
    (f"I look.\n\n{LIST}", ("I look.", [LISTED], "")),
    (LIST, ("", [LISTED], "")),
    (f"I look. {LIST}\n\nAnd then?", ("I look.", [LISTED], "And then?")),
    (f"I look:\n```xml\n{LIST}\n```\nNow I wait.", ("I look:", [LISTED], "Now I wait.")),
    (f"```\nls\n```\n{LIST}", ("```\nls\n```", [LISTED], "")),
    (f"{LIST}\n{LIST}", ("", [LISTED], "")),
    (f"{LIST}\nIt says <i>: <observation>a b</observation>", ("", [LISTED], "It says <i>: ")),
    (f"{LIST}\n1 < 2 <observ", ("", [LISTED], "1 < 2 <observ")),
    ("A call begins with `<tool_code>`, then", ("A call begins with `<tool_code>`, then", [], "")),
    (f"Write `{LIST}` so.", (f"Write `{LIST}` so.", [], "")),
    ("Say <tool_code> to call.", ("Say <tool_code> to call.", [], "")),
    ("1 < 2 and <tool_c", ("1 < 2 and <tool_c", [], "")),
    ("<tool_code> is a tag.", ("<tool_code> is a tag.", [], "")),
    ("<final_answer>\nIt is 4.\n</final_answer>\n", ("It is 4.\n", [], "")),
    ("So:\n<final_answer>4</final_answer>", ("So:\n4", [], "")),
    (f"<final_answer>Calls look so: {LIST}</final_answer>", (f"Calls look so: {LIST}", [], "")),
    ("It has no </final_answer> here.", ("It has no </final_answer> here.", [], "")),
]


def taken(text: str, cuts: Iterable[int] = ()) -> list[ParsedPiece]:
    """The pieces of a text that is split at these positions."""
    pieces, parsed = ReActParser(), list[ParsedPiece]()
    at = 0
    for cut in (*cuts, len(text)):
        parsed += pieces.feed(text[at:cut])
        at = cut
    return parsed + pieces.finish()


def seen(pieces: list[ParsedPiece]) -> Shown:
    calls = [at for at, piece in enumerate(pieces) if isinstance(piece, ParsedCall)]
    split = calls[0] if calls else len(pieces)
    before, after = (
        "".join(p.source for p in part if isinstance(p, ShownText)) for part in (pieces[:split], pieces[split:])
    )
    return before, [piece.call for piece in pieces if isinstance(piece, ParsedCall)], after


@pytest.mark.parametrize(("text", "expected"), TEXTS)
def test_shown_text_and_calls_are_separated(text: str, expected: Shown) -> None:
    assert seen(taken(text)) == expected


def called(inside: str) -> ToolCallText:
    [call] = seen(taken(f"<tool_code>{inside}</tool_code>"))[1]
    return call


@pytest.mark.parametrize(
    ("inside", "call"),
    [
        ("<name>shell</name>", ToolCallText("shell", "")),
        ("<name> shell </name><parameters>\n</parameters>", ToolCallText("shell", "")),
        (
            '<name>shell</name><parameters><![CDATA[{"command": "a && b"}]]></parameters>',
            ToolCallText("shell", '{"command": "a && b"}'),
        ),
        (
            "<name>shell</name><parameters>{&quot;command&quot;: &quot;a &amp;&amp; b&quot;}</parameters>",
            ToolCallText("shell", '{"command":"a && b"}'),
        ),
        (
            '<name>note</name><parameters>{"text": "&lt;b&gt;"}</parameters>',
            ToolCallText("note", '{"text": "&lt;b&gt;"}'),
        ),
        (
            '<name>note</name><parameters>{"text": "one\ntwo"}</parameters>',
            ToolCallText("note", '{"text":"one\\ntwo"}'),
        ),
        (
            '<name>note</name><parameters>{"text": "</parameters></tool_code> \\" <tool_code>"}</parameters>',
            ToolCallText("note", '{"text": "</parameters></tool_code> \\" <tool_code>"}'),
        ),
        (
            '```json\n{"name": "shell", "arguments": {"command": "ls"}}\n```',
            ToolCallText("shell", '{"command":"ls"}'),
        ),
        ('<name>shell</name><parameters>{"a": }', ToolCallText("shell", '{"a": }')),
        ("<name>shell</name><parameters>[1]</parameters>", ToolCallText("shell", "[1]")),
        ('<name>a</name><parameters>{"b": NaN}</parameters>', ToolCallText("a", '{"b": NaN}')),
        (
            '<parameters>{"a": 1}</parameters>',
            ToolCallText(UNREADABLE_CALL, '<parameters>{"a": 1}</parameters>'),
        ),
        ("<name>a\nb</name>", ToolCallText(UNREADABLE_CALL, "<name>a\nb</name>")),
        ('\nshell("ls")\n', ToolCallText(UNREADABLE_CALL, 'shell("ls")')),
    ],
)
def test_call_is_parsed_leniently_or_marked_invalid(inside: str, call: ToolCallText) -> None:
    assert called(inside) == call


def test_unclosed_call_is_read_to_its_end() -> None:
    unclosed = '<tool_code><name>shell</name><parameters>{"command": "ls"}'
    assert seen(taken(unclosed))[1] == [ToolCallText("shell", '{"command": "ls"}')]
    assert seen(taken(unclosed[:-4]))[1] == [ToolCallText("shell", '{"command": "')]
    assert seen(taken(f"{unclosed}</parameters>\n<observation>x"))[2] == ""


def test_text_after_a_call_is_kept_as_invented() -> None:
    for cuts in ((), range(len(LIST), len(LIST) + 20)):
        parsed = taken(f"{LIST}\nSo: <observation>a {LIST} b", cuts)
        invented = "".join(piece.source for piece in parsed if isinstance(piece, InventedResult))
        assert invented == f"<observation>a {LIST} b"


def test_unbalanced_quote_does_not_hide_the_end_of_a_call() -> None:
    text = '<tool_code><name>shell</name><parameters>{"command": "ls}</parameters></tool_code>\nSo.'
    assert seen(taken(text)) == ("", [ToolCallText("shell", '{"command": "ls}')], "So.")


def test_text_is_streamed_except_possible_beginnings_of_tags() -> None:
    pieces = ReActParser()
    assert pieces.feed("I look <") == [ShownText("I look")]
    assert pieces.feed("b> now.\n\n<tool_") == [ShownText(" <b> now.")]
    assert pieces.feed("belt>") == [ShownText("\n\n<tool_belt>")]
    assert pieces.finish() == []


@given(replies, some.data())
def test_parsing_is_independent_of_chunk_boundaries_and_loses_nothing(text: str, data: some.DataObject) -> None:
    parsed = taken(text)
    assert "".join(piece.source for piece in parsed) == text
    cuts = data.draw(some.lists(some.integers(0, len(text)), max_size=8).map(sorted))
    assert seen(taken(text, cuts)) == seen(parsed)
    assert seen(taken(text, range(len(text)))) == seen(parsed)


def test_large_call_in_small_pieces_is_parsed_in_linear_time() -> None:
    text = f'<tool_code><name>write</name><parameters>{{"text": "{"<tool_code> " * 20_000}"}}</parameters></tool_code>'
    assert [type(piece) for piece in taken(text, range(0, len(text), 3))] == [ParsedCall]


def test_markup_and_surrounding_whitespace_are_not_text() -> None:
    assert taken("<final_answer> \n yes </final_answer>") == [
        HiddenMarkup("<final_answer>"),
        HiddenMarkup(" \n "),
        ShownText("yes"),
        HiddenMarkup(" </final_answer>"),
    ]
