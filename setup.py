"""What is installed: one package, `errand`, with its catalogues, its manual page and its completion for shells.

The rest is in pyproject.toml, which cannot place a folder in a package.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from setuptools import find_packages, setup

_HERE = Path(__file__).parent
_MADE = _HERE / "build" / "share"


def _share() -> list[tuple[str, Sequence[str]]]:
    """The files below share/, made from the table of commands."""
    sys.path.insert(0, str(_HERE / "app"))
    from errand.cli.commands.installation.completion import script
    from errand.cli.commands.installation.manual import page

    files = {
        "share/man/man1/errand.1": page(),
        "share/bash-completion/completions/errand": script("bash"),
        "share/zsh/site-functions/_errand": script("zsh"),
        "share/fish/vendor_completions.d/errand.fish": script("fish"),
    }
    data_files: list[tuple[str, Sequence[str]]] = []
    for name, text in files.items():
        file = _MADE / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        data_files.append((str(Path(name).parent), [str(file.relative_to(_HERE))]))
    return data_files


def _compile_catalogues() -> None:
    """Make the catalogues that Errand reads, beside those that translators edit."""
    sys.path.insert(0, str(_HERE / "packaging"))
    from catalogues import compile_all

    compile_all()


_compile_catalogues()
setup(
    packages=[*find_packages("app"), "errand.resources"],
    package_dir={"": "app", "errand.resources": "resources"},
    data_files=_share(),
)
