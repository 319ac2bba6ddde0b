"""The terminal: remarks beside a line that is still being written."""

import io

from errand.cli.terminal.terminal import Terminal


class _Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def _shown(screen: _Screen) -> str:
    return screen.getvalue().replace("\r\x1b[2K", "")


def test_a_remark_stands_on_its_own_line_and_the_text_goes_on_below_it() -> None:
    screen = _Screen()
    terminal = Terminal(io.StringIO(), screen, screen)
    terminal.write("words of a reply")
    terminal.note("errand: stopping")
    terminal.write(" that goes on\n")
    terminal.line("the end")
    assert _shown(screen) == "words of a reply\nerrand: stopping\nthat goes on\nthe end\n"


def test_what_is_indented_stays_so_after_a_remark() -> None:
    screen = _Screen()
    terminal = Terminal(io.StringIO(), screen, screen)
    terminal.write("words of a reply")
    terminal.note("errand: stopping")
    terminal.write("     four columns in\n")
    assert _shown(screen) == "words of a reply\nerrand: stopping\n    four columns in\n"


def test_a_line_that_a_remark_ended_is_not_ended_again() -> None:
    screen = _Screen()
    terminal = Terminal(io.StringIO(), screen, screen)
    terminal.write("words of a reply")
    terminal.note("errand: stopping")
    terminal.write("\n")
    terminal.line("the end")
    assert _shown(screen) == "words of a reply\nerrand: stopping\nthe end\n"


def test_a_remark_leaves_output_that_goes_elsewhere_as_it_is() -> None:
    out, screen = io.StringIO(), _Screen()
    terminal = Terminal(io.StringIO(), out, screen)
    terminal.write("words of a reply")
    terminal.note("errand: stopping")
    terminal.write(" that goes on\n")
    assert (out.getvalue(), screen.getvalue()) == ("words of a reply that goes on\n", "errand: stopping\n")
