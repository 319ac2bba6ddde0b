"""Commands, options, settings, pages and files that texts tell people to type, to set or to open exist."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
import pytest

from errand.cli.table import TABLE
from errand.engine.core.setting_values import SettingValues
from errand.engine.core.settings import Settings
from errand.protocol.methods import METHODS
from errand.window.views.settings.dialog import PAGE_TITLES

_CHECKOUT = Path(__file__).parents[1]
_SOURCES = sorted((_CHECKOUT / "app" / "errand").rglob("*.py"))
# Without the changelog, which also tells of what is no more.
_PAGES = sorted({*(_CHECKOUT / "docs").glob("*.md"), *_CHECKOUT.glob("*.md")} - {_CHECKOUT / "docs" / "changelog.md"})
_ENTRIES = {entry.name: entry for entry in TABLE.entries}
# Programs of ours that no person starts, and words after "errand" that are no command.
_OTHERS = {"complete", "itself", "alone"}
# Its options are declared beside its server, which the command line does not import.
_OWN_OPTIONS = {"share-models"}
# What these declare or name are options of other programs (PostgreSQL's, llama.cpp's, vLLM's, git's in a patch), and of
# our own that have parsers beside them.
_OPTIONS_OF_OTHERS = {
    "--no-owner",
    "--dbname",
    "--jinja",
    "--stall-limit",
    "--token-file",
    "--models",
    "--check",
    "--git",
    "--max-model-len",
}
_ABOUT_OTHERS = ("permissions/", "sandbox/", "tools/", "checkpoints/", "installation/completion.py")
# Verbs that follow the name of a command in a sentence.
_VERBS = {"lists", "prints", "revokes"}
_NAMES = {field.name for field in msgspec.structs.fields(SettingValues)}
_TITLES = {setting.title for setting in Settings(Path("nowhere.json")).all()}
_TYPED = re.compile(r"(?<![\w/.:{-])errand ([a-z][a-z-]*)((?:(?!\berrand\b)[^\n;`|)#])*)")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
_OPTIONS = {
    "--help",
    "--version",
    *(part.name for entry in TABLE.entries for part in entry.described() if part.is_option),
}
_SETTING = re.compile(r"[sS]etting (?:[`“]([^`”]+)[`”]|([a-z]+(?:_[a-z]+)+))")
_PAGE = re.compile(r"(?:page|Settings →|Settings,) “?([A-Z]\w+)|settings, under ([A-Z]\w+(?: and \w+)?)")
# Files and folders that a page of docs names, as code and by links.
_FOLDERS = ("app", "docs", "packaging", "resources", "tests")
_CODE = re.compile(r"`([^`\n]+)`")
_FILE = re.compile(r"(?<![\w./~…-])(?:[\w.-]+/)*[\w.-]+\.(?:py|md|po|json|jsonl|sh|yaml|toml|svg|css|html|js)(?![\w/])")
_FOLDER = re.compile(
    r"(?<![\w./~-])(?:tests|app|engine|window|cli|client|protocol|packaging|resources|docs)(?:/[\w-]+)+(?![\w./*{-])"
)
_LINK = re.compile(r"\]\(([^)#\s:]+)[)#]")
# Files that the program makes or people write, and methods on the wire that look like folders.
_FILES_OF_PEOPLE = {
    "run/engine.json",
    ".errand/mcp.json",
    "mcp.json",
    ".mcp.json",
    "conversations.json",
    "all.jsonl",
    "x.html",
    "settings.json",
    "AGENTS.md",
    "CLAUDE.md",
    "SKILL.md",
    "example.py",
    "resources/locale/fr/LC_MESSAGES/errand.po",
}
_METHODS = {method.name for method in METHODS}


@cache
def _texts(file: Path) -> tuple[str, ...]:
    """The texts of a source, with `{}` for what is put into them; a page as it is."""
    return tuple(_read(file)) if file.suffix == ".py" else (file.read_text(encoding="utf-8"),)


def _read(file: Path) -> Iterator[str]:
    source = file.read_text(encoding="utf-8")
    if not any(pattern.search(source) for pattern in (_TYPED, _SETTING, _PAGE, _OPTION)):
        return  # parsing takes long
    tree = ast.parse(source)
    joined = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    within = {id(part) for node in joined for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in within:
            yield node.value


def _wrong_commands(text: str) -> Iterator[str]:
    for match in _TYPED.finditer(text):
        name, rest = match[1], match[2].partition(" -- ")[0]
        if name in _OTHERS:
            continue
        if name not in _ENTRIES:
            yield f"errand {name}"
            continue
        command = _ENTRIES[name].load()
        actions = {verb for action in command.actions for verb in action.names} | _VERBS
        word = re.match(r" ([a-z][a-z-]*)\b(?![|/{])", rest)
        if command.actions and not command.takes_others and word and word[1] not in actions:
            yield f"errand {name} {word[1]}"
        options = {part.name for part in _ENTRIES[name].described()} | {"--help"}
        if name not in _OWN_OPTIONS:
            yield from (f"errand {name} {option}" for option in _OPTION.findall(rest) if option not in options)


def _wrong_options(text: str) -> Iterator[str]:
    """Options that no command has, in sentences: a word alone is an argument for another program."""
    if len(text.split()) > 2:
        yield from (option for option in _OPTION.findall(text) if option not in _OPTIONS | _OPTIONS_OF_OTHERS)


def _wrong_settings(text: str) -> Iterator[str]:
    for match in _SETTING.finditer(text):
        name = match[1] or match[2]
        if name not in _NAMES | _TITLES and "{" not in name:
            yield f"setting {name}"
    for match in re.finditer(r"errand settings (?:get|set|reset) ([a-z_]+)", text):
        if match[1] not in _NAMES:
            yield match[0]


def _wrong_pages(text: str) -> Iterator[str]:
    for match in _PAGE.finditer(text):
        if (title := match[1] or match[2]) not in PAGE_TITLES and not any(
            page_title.startswith(title) for page_title in PAGE_TITLES
        ):
            yield f"page {title}"


@cache
def _present() -> frozenset[str]:
    """The files and folders of the checkout, each also by the ends of its path."""
    below = (path for folder in _FOLDERS for path in (_CHECKOUT / folder).rglob("*") if "__pycache__" not in path.parts)
    paths = [path.relative_to(_CHECKOUT).parts for path in (*below, *_CHECKOUT.glob("*.*"))]
    return frozenset("/".join(parts[start:]) for parts in paths for start in range(len(parts)))


def _wrong_files(text: str, folder: Path = _CHECKOUT) -> Iterator[str]:
    for code in _CODE.findall(text):
        for match in _FILE.finditer(code):
            if match[0] not in _present() | _FILES_OF_PEOPLE:
                yield match[0]
        for match in _FOLDER.finditer(code):
            if match[0] not in _present() | _METHODS and f"{match[0]}.py" not in _present():
                yield match[0]
    yield from (link for link in _LINK.findall(text) if not (folder / link).exists())


def test_every_file_that_a_page_names_is_there() -> None:
    wrong = [
        f"{page.relative_to(_CHECKOUT)}: {mention}"
        for page in _PAGES
        for text in _texts(page)
        for mention in _wrong_files(text, page.parent)
    ]
    assert wrong == []


@pytest.mark.parametrize("files", [_SOURCES, _PAGES], ids=["sources", "pages"])
def test_every_command_setting_and_page_that_a_text_names_is_there(files: list[Path]) -> None:
    wrong = [
        f"{file.relative_to(_CHECKOUT)}: {mention}"
        for file in files
        for text in _texts(file)
        for mention in (*_wrong_commands(text), *_wrong_settings(text), *_wrong_pages(text))
    ]
    assert files and wrong == []


def test_every_option_that_a_text_names_is_one_of_a_command() -> None:
    own = [file for file in _SOURCES if not any(part in file.as_posix() for part in _ABOUT_OTHERS)]
    wrong = [f"{file.name}: {mention}" for file in own for text in _texts(file) for mention in _wrong_options(text)]
    assert wrong == []


def test_what_is_not_there_is_found() -> None:
    text = "`errand fly`, `errand mcp shwo x` or `errand run --fast`; errand settings set max_trns 3, setting day_limit"
    assert [*_wrong_commands(text)] == ["errand fly", "errand mcp shwo", "errand run --fast"]
    assert [*_wrong_options(text)] == ["--fast"]
    assert [*_wrong_settings(text)] == ["setting day_limit", "errand settings set max_trns"]
    named = "`pytest tests/test_nothing.py tests/engine/tools`, `engine/nothing`, `nowhere.py` and [a page](gone.md)"
    assert [*_wrong_files(named)] == ["tests/test_nothing.py", "engine/nothing", "nowhere.py", "gone.md"]
    assert [*_wrong_pages("See Settings → Moods and the page Data.")] == ["page Moods"]


def test_no_decision_is_missing_in_the_numbering() -> None:
    numbers = sorted(int(page.name.partition("-")[0]) for page in (_CHECKOUT / "docs" / "decisions").glob("*.md"))
    assert numbers == list(range(1, len(numbers) + 1))
