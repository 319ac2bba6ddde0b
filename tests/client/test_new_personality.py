"""Personalities from files with arbitrary content."""

import os
from pathlib import Path

import pytest

from errand.client import personality_file
from errand.client.personality_file import NotAPersonality, new_personality
from errand.protocol.agents import Personality


def named(name: str) -> Personality:
    return Personality(id="x", name=name, system_prompt="")


@pytest.mark.parametrize(
    ("imported_name", "taken"),
    [
        ("Ada", "Ada"),
        ("  \u202eevil\x1b[31m\nname ", "evil name"),
        ("ops@home", "ops home"),
        ("\x00\u200b", "Imported"),
        ("a" * 200, "a" * 90),
        ("プログラマー", "プログラマー"),
        ("Coder", "Coder 2"),
    ],
)
def test_imported_personality_gets_a_valid_name(imported_name: str, taken: str) -> None:
    assert new_personality(named(imported_name), [named("coder")], ()).personality.name == taken


def test_non_regular_file_is_refused_without_blocking(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(NotAPersonality, match="not a file"):
            personality_file.read(path)
