"""Numbers, paths and text width."""

from pathlib import Path

import pytest

from errand.cli.terminal.style import style_for
from errand.cli.terminal.text import columns, cut, one_line, plain, short_path, time_ago, wrapped
from errand.client.number_format import duration, elapsed, money
from errand.protocol.tasks.task import replace_fields
from errand.protocol.usage import Usage
from tests.support.records import task


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (9.94, "9.9 s"), (42.3, "42 s"), (61, "1 min 1 s"), (3600, "1 h 0 min"), (7384, "2 h 3 min")],
)
def test_a_duration_has_the_unit_that_fits(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_an_unknown_price_is_not_shown_as_nothing() -> None:
    assert (money(Usage()), money(Usage(cost_usd=0.0)), money(Usage(cost_usd=12.5))) == ("", "$0", "$12.50")


def test_wide_characters_count_two_columns_and_marks_none() -> None:
    assert (columns("abc"), columns("漢字"), columns("e\u0301")) == (3, 4, 1)


def test_text_is_cut_to_columns_and_not_to_characters() -> None:
    assert (cut("漢字漢字", 5), cut("abcdef", 4), cut("abc", 3)) == ("漢字…", "abc…", "abc")


def test_long_lines_are_broken_at_blanks_and_short_ones_stay() -> None:
    assert wrapped("aaa bbb ccc\nshort\n", 7) == "aaa bbb\nccc\nshort\n"
    assert wrapped("abcdefgh ij", 4) == "abcdefgh\nij"


def test_lines_become_one_line() -> None:
    assert one_line("a\n  b\tc", 20) == "a b c"


def test_plain_text_keeps_newlines_tabs_and_every_script() -> None:
    assert plain("a\tb\r\nc é 漢 🙂") == "a\tb\nc é 漢 🙂"


def test_the_home_directory_is_a_tilde_only_for_what_is_in_it() -> None:
    home = str(Path.home())
    assert short_path(f"{home}/x") == "~/x"
    assert short_path(f"{home}x") == f"{home}x"


@pytest.mark.parametrize(
    ("environment", "is_terminal", "colour"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
    ],
)
def test_colours_follow_the_terminal_and_the_environment(
    environment: dict[str, str], is_terminal: bool, colour: bool
) -> None:
    assert style_for(environment, is_terminal, "utf-8").colour is colour


def test_ages_are_shown_in_one_unit() -> None:
    assert [time_ago(seconds) for seconds in (-1, 41.2, 130, 7_000, 200_000)] == [
        "0 s ago",
        "41 s ago",
        "2 min ago",
        "2 h ago",
        "2 d ago",
    ]


def test_the_time_of_an_interrupted_task_is_what_it_worked_and_does_not_go_on() -> None:
    assert elapsed(replace_fields(task(), status="interrupted", worked_s=4.5)) == 4.5
    assert elapsed(task()) > 86_400  # for a running task it counts from its start
