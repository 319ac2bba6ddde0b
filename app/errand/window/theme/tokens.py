"""The single table of design tokens: colours, sizes, spaces, radii. No other module defines a colour or a size."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignTokens:
    """Colours are `#rrggbb`; all other values are in device-independent pixels.

    `page` is the background of the transcript, `panel` of side bars, `raised` of cards, inputs and menus. `edge` is for
    scroll bars and the border of input fields and check boxes, `outline` for the border of everything else. `hit` is
    the background of search hits, `hit_now` of the current one. For states, the plain name is for text, `_mark` for
    dots and icons, `_soft` for backgrounds. `added_word` and `removed_word` are behind the changed words of a diff.
    `person_` colours distinguish agents: for names, readable on any background. `size_reading` is the transcript's font
    size, which the user chooses.
    """

    dark: bool
    page: str
    panel: str
    raised: str
    bubble: str
    code: str
    hover: str
    pressed: str
    selected: str
    hit: str
    hit_now: str
    hairline: str
    outline: str
    edge: str
    focus: str
    text: str
    muted: str
    disabled: str
    link: str
    accent: str
    accent_hover: str
    accent_pressed: str
    accent_soft: str
    on_accent: str
    waiting: str
    waiting_mark: str
    waiting_soft: str
    done: str
    done_mark: str
    done_soft: str
    failed: str
    failed_mark: str
    failed_soft: str
    added_word: str
    removed_word: str
    danger: str
    danger_hover: str
    syntax_keyword: str
    syntax_string: str
    syntax_number: str
    syntax_name: str
    syntax_comment: str
    person_blue: str
    person_teal: str
    person_green: str
    person_amber: str
    person_orange: str
    person_red: str
    person_pink: str
    person_violet: str
    person_gray: str
    size_small: int = 12
    size_base: int = 13
    size_large: int = 15
    size_reading: int = 13
    size_heading: int = 18
    space_tight: int = 4
    space_close: int = 8
    space_normal: int = 12
    space_wide: int = 16
    space_far: int = 24
    radius_control: int = 6
    radius_card: int = 8
    icon_small: int = 16
    icon_large: int = 20
    column: int = 760


LIGHT = DesignTokens(
    dark=False,
    page="#ffffff",
    panel="#f5f6f8",
    raised="#ffffff",
    bubble="#e8effd",
    code="#f4f5f7",
    hover="#ebedf1",
    pressed="#e1e4e9",
    selected="#dde7fb",
    hit="#fdeaae",
    hit_now="#ffb84d",
    hairline="#e4e6ea",
    outline="#c6cad2",
    edge="#878d98",
    focus="#2f62d9",
    text="#1d2027",
    muted="#5a616d",
    disabled="#9aa0aa",
    link="#2459cf",
    accent="#2f62d9",
    accent_hover="#2756c4",
    accent_pressed="#204aac",
    accent_soft="#e8effd",
    on_accent="#ffffff",
    waiting="#855000",
    waiting_mark="#c97a00",
    waiting_soft="#fdf3dd",
    done="#1a6b39",
    done_mark="#2a9d55",
    done_soft="#e5f5ea",
    failed="#b3261e",
    failed_mark="#d5423a",
    failed_soft="#fdecea",
    added_word="#bfe7cc",
    removed_word="#fad5d2",
    danger="#c0312a",
    danger_hover="#a92822",
    syntax_keyword="#8c2f8f",
    syntax_string="#1a6b39",
    syntax_number="#855000",
    syntax_name="#2459cf",
    syntax_comment="#5a616d",
    person_blue="#1f57d6",
    person_teal="#106c70",
    person_green="#187239",
    person_amber="#7c5c03",
    person_orange="#a5450d",
    person_red="#c0211b",
    person_pink="#b3207a",
    person_violet="#7436d6",
    person_gray="#5c6370",
)

DARK = DesignTokens(
    dark=True,
    page="#1b1c1f",
    panel="#161719",
    raised="#232529",
    bubble="#28324a",
    code="#141517",
    hover="#2a2d32",
    pressed="#33363c",
    selected="#2b3a5c",
    hit="#4a4020",
    hit_now="#7d5a0e",
    hairline="#32353b",
    outline="#4b4f58",
    edge="#767b86",
    focus="#7ba4ff",
    text="#e4e6ea",
    muted="#a3a9b4",
    disabled="#666c76",
    link="#8ab0ff",
    accent="#3d6fdf",
    accent_hover="#3665d1",
    accent_pressed="#2d59bf",
    accent_soft="#28324a",
    on_accent="#ffffff",
    waiting="#f0b452",
    waiting_mark="#e5a53a",
    waiting_soft="#362c19",
    done="#72cf92",
    done_mark="#4fb877",
    done_soft="#1c3124",
    failed="#ff958c",
    failed_mark="#ee6a60",
    failed_soft="#3d2221",
    added_word="#23442f",
    removed_word="#622e2c",
    danger="#c4392f",
    danger_hover="#b03028",
    syntax_keyword="#d9a0e6",
    syntax_string="#8fd0a4",
    syntax_number="#f0b452",
    syntax_name="#8ab0ff",
    syntax_comment="#a3a9b4",
    person_blue="#80a5f5",
    person_teal="#4fc7cc",
    person_green="#6bcb8c",
    person_amber="#e3b54e",
    person_orange="#f18e55",
    person_red="#ee8a87",
    person_pink="#ea86be",
    person_violet="#bc98f0",
    person_gray="#a0a6b1",
)

_SIZES = ("size_small", "size_base", "size_large", "size_heading")
_LENGTHS = (
    *("space_tight", "space_close", "space_normal", "space_wide", "space_far"),
    *("radius_control", "radius_card", "icon_small", "icon_large", "column"),
)
SCALED = (*_SIZES, "size_reading", *_LENGTHS)
"""The tokens in pixels."""


def scaled_tokens(tokens: DesignTokens, lengths: float, text: float) -> DesignTokens:
    """Return all lengths times one factor, sizes of text times another; sizes that differ stay different."""
    sizes: dict[str, int] = {}
    smallest = 0
    for name in _SIZES:
        smallest = sizes[name] = max(round(getattr(tokens, name) * text), smallest + 1)
    return replace(tokens, **sizes, **{name: max(1, round(getattr(tokens, name) * lengths)) for name in _LENGTHS})
