"""Text is readable in both themes: contrast by WCAG 2.2."""

from typing import get_args

import pytest

from errand.protocol.agents import Color
from errand.window.theme.tokens import DARK, LIGHT, DesignTokens

THEMES = pytest.mark.parametrize("tokens", [LIGHT, DARK], ids=["light", "dark"])
PEOPLE = tuple(f"person_{color}" for color in get_args(Color) if color)
TEXT_ON_EVERYTHING = ("text", "muted", *PEOPLE)
GROUNDS = ("page", "panel", "raised", "bubble", "code", "hover", "pressed", "selected")
PAIRS = (
    ("link", "page"),
    ("link", "raised"),
    ("link", "bubble"),
    ("on_accent", "accent"),
    ("on_accent", "accent_hover"),
    ("on_accent", "accent_pressed"),
    ("on_accent", "danger"),
    ("on_accent", "danger_hover"),
    ("text", "hit"),
    ("text", "hit_now"),
    ("text", "added_word"),
    ("text", "removed_word"),
    *(
        (f"syntax_{part}", ground)
        for part in ("keyword", "string", "number", "name", "comment")
        for ground in ("code", "page", "done_soft", "failed_soft", "added_word", "removed_word")
    ),
    *((state, ground) for state in ("waiting", "done", "failed") for ground in ("page", "panel", "raised", "code")),
    *((state, f"{state}_soft") for state in ("waiting", "done", "failed")),
    *(("text", f"{state}_soft") for state in ("waiting", "done", "failed", "accent")),
)
SHAPES = tuple(
    (mark, ground)
    for mark in ("waiting_mark", "done_mark", "failed_mark", "focus", "accent", "edge")
    for ground in ("page", "panel", "raised")
)


def luminance(colour: str) -> float:
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(tokens: DesignTokens, first: str, second: str) -> float:
    lights = sorted((luminance(str(getattr(tokens, name))) for name in (first, second)), reverse=True)
    return (lights[0] + 0.05) / (lights[1] + 0.05)


@THEMES
def test_every_text_has_a_contrast_of_four_and_a_half_on_its_background(tokens: DesignTokens) -> None:
    pairs = [*PAIRS, *((text, ground) for text in TEXT_ON_EVERYTHING for ground in GROUNDS)]
    poor = {pair: round(contrast(tokens, *pair), 2) for pair in pairs if contrast(tokens, *pair) < 4.5}
    assert poor == {}


@THEMES
def test_marks_input_borders_and_focus_rings_have_a_contrast_of_three(tokens: DesignTokens) -> None:
    poor = {pair: round(contrast(tokens, *pair), 2) for pair in SHAPES if contrast(tokens, *pair) < 3}
    assert poor == {}
