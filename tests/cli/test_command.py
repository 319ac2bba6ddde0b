"""The table of commands, and how a struct of options declares what argparse reads."""

from typing import Annotated, Literal

import msgspec
import pytest

from errand.cli.command import Command, Entry
from errand.cli.options import Argument, CommandOptions, Flag, Option, declare, read
from errand.cli.parser import parse
from errand.cli.table import TABLE
from errand.text.argument_parser import Parser


class _Colors(CommandOptions, frozen=True, kw_only=True):
    color: Annotated[Literal["red", "blue"] | None, Option("--color", "its color")] = None


class _Options(CommandOptions, frozen=True, kw_only=True):
    name: Annotated[str, Argument("NAME", "its name")]
    numbers: Annotated[tuple[str, ...], Option("-n", "a number; may be given again", "NUMBER")] = ()
    colors: _Colors = _Colors()
    share: Annotated[float, Option("--share", "a share")] = 0.5
    size: Annotated[int, Option("--size", "its size")]
    test: Annotated[str | None, Option("--test", "one, or all", const="")] = None
    up: Annotated[bool, Flag("--up", "move it up", group="way")] = False
    down: Annotated[bool, Flag("--down", "move it down", group="way")] = False


def _read(*arguments: str) -> _Options:
    parser = Parser(prog="errand")
    declare(_Options, parser)
    return read(_Options, vars(parser.parse_args(arguments)))


@pytest.mark.parametrize("entry", [*TABLE.entries, TABLE.default], ids=lambda entry: entry.name or "alone")
def test_every_line_of_the_table_names_a_command(entry: Entry) -> None:
    assert isinstance(entry.load(), Command)


@pytest.mark.parametrize("entry", TABLE.entries, ids=lambda entry: entry.name)
def test_every_command_has_help_that_fits_80_columns(
    entry: Entry, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as end:
        parse([entry.name, "--help"], TABLE)
    assert end.value.code == 0
    output = capsys.readouterr().out
    assert output.startswith(f"usage: errand {entry.name} [-h]")
    assert max(map(len, output.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("runn", "x"), "errand: there is no command 'runn'. Did you mean run?\nTry: errand --help\n"),
        (("fly",), "errand: there is no command 'fly'.\nTry: errand --help\n"),
        (("run", "--modell", "a/b", "x"), "errand: there is no option --modell. Did you mean --model"),
        (("tasks", "--jsn=1"), "errand: there is no option --jsn. Did you mean --json?\nTry: errand tasks --help\n"),
        (("stop", "a", "--qqqq"), "errand: there is no option --qqqq.\nTry: errand stop --help\n"),
        (("--qqqq",), "errand: there is no option --qqqq.\nTry: errand --help\n"),
        (("usage", "a", "b", "c"), "is one argument too many."),
    ],
)
def test_what_is_not_understood_is_named_with_what_is_like_it(
    arguments: tuple[str, ...], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        parse([*arguments], TABLE)
    assert end.value.code == 2
    assert error in capsys.readouterr().err


def test_an_unknown_action_is_named_with_what_is_like_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        parse(["mcp", "shwo", "files"], TABLE)
    assert end.value.code == 2
    assert capsys.readouterr().err == "errand: mcp has no 'shwo'. Did you mean show?\nTry: errand mcp --help\n"


def test_a_command_whose_first_word_is_free_takes_any() -> None:
    parse(["agents", "conv_1"], TABLE)


@pytest.mark.parametrize("columns", [50, 80, 200])
def test_the_general_help_has_every_command_in_its_group_and_fits_the_terminal(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    with pytest.raises(SystemExit) as end:
        parse(["--help"], TABLE)
    output = capsys.readouterr().out
    assert end.value.code == 0
    texts = [line for line in output.splitlines() if not line.startswith(("  errand", "  #"))]
    assert max(map(len, texts)) <= columns
    for group in TABLE.groups:
        below = output.partition(f"\n{group.title}:\n")[2].partition("\n\n")[0]
        assert [entry.name for entry in group.entries] == [
            line.split()[0] for line in below.splitlines() if line[2] != " "
        ]


def test_an_argument_that_may_be_left_out_may_follow_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["fork", "3f2a", "--at", "9c", "go on"], ["fork", "--at", "9c", "3f2a", "go on"]):
        assert msgspec.structs.asdict(parse(arguments, TABLE).options)["text"] == "go on"
    parse(["run", "--", "--help me"], TABLE)
    with pytest.raises(SystemExit):
        parse(["fork", "3f2a", "--at", "9c", "go", "on"], TABLE)
    assert "'on' is one argument too many." in capsys.readouterr().err


def test_missing_options_keep_their_defaults() -> None:
    assert _read("a", "--size", "3") == _Options(name="a", size=3)


def test_every_kind_of_option_is_read() -> None:
    arguments = ("a", "-n", "1", "-n", "2", "--color", "red", "--share", "0.2", "--size", "3", "--test", "--down")
    colors = _Colors(color="red")
    assert _read(*arguments) == _Options(
        name="a", numbers=("1", "2"), colors=colors, share=0.2, size=3, test="", down=True
    )


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("a",), "the following arguments are required: --size"),
        (("--size", "3"), "the following arguments are required: NAME"),
        (("a", "--size", "0"), "argument --size: '0' is not a whole number above 0"),
        (("a", "--size", "3", "--share", "inf"), "argument --share: 'inf' is not an amount above 0"),
        (("a", "--size", "3", "--color", "green"), "argument --color: invalid choice: 'green'"),
        (("a", "--size", "3", "--up", "--down"), "argument --down: not allowed with argument --up"),
    ],
)
def test_wrong_usage_ends_with_2_and_says_what_is_wrong(
    arguments: tuple[str, ...], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        _read(*arguments)
    assert end.value.code == 2
    assert error in capsys.readouterr().err


@pytest.mark.parametrize(
    "entry",
    [entry for entry in TABLE.entries if entry.load().actions and not entry.load().takes_others],
    ids=lambda entry: entry.name,
)
def test_an_unknown_action_is_answered_with_each_known_one_once(
    entry: Entry, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse([entry.name, "q9"], TABLE)
    error = capsys.readouterr().err
    names = error.partition("There is: ")[2].partition(".")[0].split(", ")
    assert names == list(dict.fromkeys(names)) and len(names) > 1, error
