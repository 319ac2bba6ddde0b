"""All files of the package that are not Python are installed with it."""

import tomllib
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_PACKAGE = _ROOT / "app" / "errand"


def test_each_text_and_template_is_part_of_the_installed_package() -> None:
    settings = tomllib.loads((_ROOT / "pyproject.toml").read_text("utf-8"))
    patterns: list[str] = settings["tool"]["setuptools"]["package-data"]["errand"]
    installed = {path for pattern in patterns for path in _PACKAGE.glob(pattern)}
    data = {path for path in _PACKAGE.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    assert data
    assert data <= installed
