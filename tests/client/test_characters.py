"""Text for approvals: hidden and misleading characters are escaped, and living scripts stay unchanged."""

import unicodedata

import pytest

from errand.client.safe_text import escape_hidden, escape_hidden_line

# https://www.unicode.org/Public/14.0.0/ucd/DerivedCoreProperties.txt, Default_Ignorable_Code_Point
IGNORABLE = (
    *(0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), *range(0x200B, 0x2010)),
    *(*range(0x202A, 0x202F), *range(0x2060, 0x2070), 0x3164, *range(0xFE00, 0xFE10), 0xFEFF, 0xFFA0),
    *(*range(0xFFF0, 0xFFF9), *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B), *range(0xE0000, 0xE1000)),
)


def test_every_invisible_code_point_is_escaped() -> None:
    seen = [code for code in IGNORABLE if chr(code) in escape_hidden(f"rm{chr(code)}x")]
    assert (len(IGNORABLE), seen) == (4174, [])


def test_no_control_blank_or_unassigned_code_point_is_shown_as_it_is() -> None:
    unseen = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}
    codes = (code for code in range(0x110000) if code not in (9, 10, 32))
    assert [
        hex(code)
        for code in codes
        if unicodedata.category(chr(code)) in unseen and chr(code) in escape_hidden(chr(code))
    ] == []


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("ls\u202e; rm\x1b[8m", "ls\\u202e; rm\\u001b[8m"),
        ("a\u00a0b\u2800c\u3164d", "a\\u00a0b\\u2800c\\u3164d"),
        ("\U000e0041\ufe0f", "\\U000e0041\\ufe0f"),
        ("o\u0338", "o\\u0338"),
        ("a\u0301\u0302\u0303\u0304", "a\u0301\u0302\\u0303\\u0304"),
        ("rm /\u0301x", "rm /\\u0301x"),
        ("\u0301", "\\u0301"),
        ("two\nlines\tand é e\u0301", "two\nlines\tand é e\u0301"),
        ("नमस्ते สวัสดี がぎ שלום 漢字", "नमस्ते สวัสดี がぎ שלום 漢字"),
    ],
)
def test_misleading_characters_are_escaped_and_ordinary_text_stays(text: str, escaped: str) -> None:
    assert escape_hidden(text) == escaped


def test_newline_is_a_symbol_in_a_single_line() -> None:
    assert escape_hidden_line("ls\nrm x\ty\r") == "ls ↵ rm x y\\u000d"
