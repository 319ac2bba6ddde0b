"""JSON whose backslashes were not doubled, as models write paths of Windows and regular expressions."""

import pytest

from errand.engine.core.json_input.lenient_json import read_object


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'{"a": "\d+\.\w"}', r"\d+\.\w"),
        (r'{"a": "C:\Users\new\table.txt"}', r"C:\Users\new\table.txt"),
        (r'{"a": "C:\Users\\new"}', r"C:\Users\new"),
        (r'{"a": ".\Users\test"}', r".\Users\test"),
        (r'{"a": "import re\nre.match(\"\d\")\n"}', 'import re\nre.match("\\d")\n'),
        (r'{"a": "\\\d"}', r"\\d"),
        ('{"a": "\\d\nb"}', "\\d\nb"),
        (r'{"a": "\s"}<|im_end|>', r"\s"),
        (r'{"a": "\section{A}\n\begin{b}"}', "\\section{A}\n\\begin{b}"),
        (r'{"a": "grep \"\bfoo\b \w\""}', r'grep "\bfoo\b \w"'),
        (r'{"a": "\alpha + \beta"}', r"\alpha + \beta"),
    ],
)
def test_backslashes_that_begin_no_escape_stand_for_themselves(text: str, value: str) -> None:
    assert read_object(text) == {"a": value}


@pytest.mark.parametrize(
    "text",
    [
        r'{"a": "it\'s"}',
        r'{"a": "\$HOME"}',
        r'{"a": "C:\dir\"}',
        r'{"a": 1, \d}',
        r'{"a": "\section{A} \textbf{b}"}',
        r'{"a": "dir C:\Users\new"}',
        r'{"a": "\documentclass{a}\nText"}',
        r'{"a": "\d", "a": "\w"}',
        r'{"a": "\d"} {"b": "\d"}',
        "{" + '"\\d' * 20_000,
        '{"a": "' + "\\" * 99_999 + "d",
    ],
)
def test_what_else_may_be_meant_is_not_guessed(text: str) -> None:
    assert read_object(text) is None


def test_escapes_of_valid_json_are_left_as_they_are() -> None:
    assert read_object(r'{"a": "C:\\new\ttext"}') == {"a": "C:\\new\ttext"}
