"""The language of texts: which is chosen, and what its catalogue must hold."""

import os
import re
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from catalogues import compile_all, extract, languages, read, texts

from errand.engine.core.settings import Settings
from errand.system.language import chosen_language
from errand.text.translation import grouped, tr, trn, use_language

_ROOT = Path(__file__).parents[2]
_PLACEHOLDER = re.compile(r"\{[^{}]*\}|%(?:\(\w+\))?[sr]")


@pytest.fixture(autouse=True)
def english_afterwards() -> Generator[None]:
    yield
    use_language("en")


def test_the_setting_chooses_the_language_and_a_variable_beats_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "settings.json"
    Settings(file).set("language", "de")
    assert chosen_language(file) == "de"
    monkeypatch.setenv("ERRAND_LANGUAGE", "en")
    assert chosen_language(file) == "en"


@pytest.mark.parametrize(
    ("variables", "language"),
    [
        ({"LANG": "de_AT.UTF-8"}, "de_AT"),
        ({"LANG": "C.UTF-8"}, "en"),
        ({"LANG": "de_DE.UTF-8", "LC_ALL": "en_GB.UTF-8"}, "en_GB"),
        ({"LANG": "en_GB.UTF-8", "LANGUAGE": "de:en"}, "de"),
        ({"LANG": "sr_RS@latin"}, "sr_RS"),
        ({"LANG": ""}, "en"),
    ],
)
def test_without_a_setting_the_system_chooses_the_language(
    variables: dict[str, str], language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "settings.json"
    file.write_text("{}")  # a missing one has the system describe the error, in the language of the variables
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert chosen_language(file) == language


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"language": 3}', b"\xff\xfe", b"[" * 100_000])
def test_an_unreadable_settings_file_leaves_the_language_to_the_system(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_bytes(content)
    assert chosen_language(file) == "en"


def test_a_language_without_a_catalogue_is_english() -> None:
    for language in ("xx", "en_GB", "../../etc", "", "de/../de"):
        use_language(language)
        assert tr("Settings") == "Settings"
        assert [trn("{n} file", "{n} files", n) for n in (0, 1, 2)] == ["0 files", "1 file", "2 files"]


def test_each_language_that_can_be_chosen_has_a_catalogue(tmp_path: Path) -> None:
    settings = {setting.name: setting for setting in Settings(tmp_path / "settings.json").all()}
    assert {*settings["language"].choices} == {"system", "en", *languages()}


@pytest.mark.parametrize("language", languages())
def test_a_catalogue_has_each_text_of_the_code_with_its_placeholders(language: str) -> None:
    catalogue, source_texts = texts(read(language)), texts(extract())
    assert sorted(source_texts.keys() - catalogue.keys()) == [], "run `make catalogues` and translate what is new"
    assert sorted(catalogue.keys() - source_texts.keys()) == [], "run `make catalogues`"
    for english, translated in catalogue.items():
        assert all(translated), f"not translated: {english}"
        names = set(_PLACEHOLDER.findall(english[-1]))
        assert all(set(_PLACEHOLDER.findall(form)) <= names for form in translated), f"other placeholders: {english}"
        assert set(_PLACEHOLDER.findall(translated[-1])) == names, f"other placeholders: {english}"


def test_texts_are_shown_in_the_chosen_language() -> None:
    compile_all()
    use_language("de_AT")
    assert tr("Settings") == "Einstellungen"
    assert tr("") == ""


@pytest.mark.parametrize("name", ["de", "de_AT", "German_Germany", "DE"])
def test_numbers_have_the_marks_of_the_language_by_whatever_name_it_was_chosen(name: str) -> None:
    compile_all()
    use_language(name)
    assert (tr("Settings"), grouped(12345)) == ("Einstellungen", "12.345")


def test_the_command_line_speaks_the_chosen_language(tmp_path: Path) -> None:
    compile_all()
    environment = {**os.environ, "ERRAND_HOME": str(tmp_path), "ERRAND_LANGUAGE": "de"}
    process = subprocess.run(
        [sys.executable, "-m", "errand", "--help"], env=environment, capture_output=True, text=True, check=True
    )
    assert "Aufgabe" in process.stdout


@pytest.mark.parametrize(
    ("arguments", "expected_texts"),
    [
        (["list", "--help"], ("Aufruf: errand list", "Optionen:", "diese Hilfe zeigen")),
        (["show"], ("diese Argumente fehlen: ", "Hilfe: errand show --help")),
        (["list", "--limit"], ("erwartet ein Argument",)),
    ],
)
def test_argparse_speaks_the_chosen_language(
    arguments: list[str], expected_texts: tuple[str, ...], tmp_path: Path
) -> None:
    compile_all()
    environment = {**os.environ, "ERRAND_HOME": str(tmp_path), "ERRAND_LANGUAGE": "de"}
    command = [sys.executable, "-m", "errand", *arguments]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert all(text in process.stdout + process.stderr for text in expected_texts), process.stdout + process.stderr
