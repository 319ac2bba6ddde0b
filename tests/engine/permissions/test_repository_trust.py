"""Where git may read without asking: repositories whose configuration is data alone."""

import subprocess
from pathlib import Path

import pytest

from app.engine.permissions.repository_trust import names_no_program


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", "-b", "main", tmp_path], check=True)
    for words in (["config", "user.name", "Dana"], ["config", "user.email", "d@example.org"], ["add", "-A"]):
        subprocess.run(["git", "-C", tmp_path, *words], check=True)
    return tmp_path


def test_a_new_repository_and_no_repository_name_no_program(repository: Path, tmp_path: Path) -> None:
    (repository / "src").mkdir()
    assert names_no_program(str(repository))
    assert names_no_program(str(repository / "src"))


@pytest.mark.parametrize(
    "text",
    [
        "[core]\n\tfsmonitor = ./x\n",
        "[core] pager = ./x\n",
        "[include]\n\tpath = ../x\n",
        '[filter "lfs"]\n\tclean = ./x\n',
        '[diff "x"]\n\ttextconv = ./x\n',
        "[alias]\n\tx = !x\n",
        "[core]\n\tbare = \\\nfalse\n",
        "[gpg]\n\tprogram = ./x\n",
        "core.fsmonitor = x\n",
    ],
)
def test_a_configuration_that_may_name_a_program_is_not_trusted(repository: Path, text: str) -> None:
    with (repository / ".git" / "config").open("a") as config:
        config.write(text)
    assert not names_no_program(str(repository))


def test_hooks_that_reading_runs_links_and_other_repositories_are_not_trusted(repository: Path) -> None:
    hook = repository / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.touch()
    assert not names_no_program(str(repository))
    hook.unlink()
    (repository / "bare" / "objects").mkdir(parents=True)
    (repository / "bare" / "HEAD").touch()
    assert not names_no_program(str(repository / "bare"))
    (repository / "linked").mkdir()
    (repository / "linked" / ".git").symlink_to(repository / ".git")
    assert not names_no_program(str(repository / "linked"))


def test_a_repository_in_the_repository_is_not_trusted(repository: Path) -> None:
    inner = repository / "inner"
    commit = ["-c", "user.name=D", "-c", "user.email=d@e", "commit", "-q", "--allow-empty", "-m", "x"]
    for words in (["init", "-q", inner], ["-C", inner, *commit], ["-C", repository, "add", "inner"]):
        subprocess.run(["git", *words], check=True, stderr=subprocess.DEVNULL)
    assert not names_no_program(str(repository))
