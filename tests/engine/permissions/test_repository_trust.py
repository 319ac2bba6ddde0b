"""Where git may read without asking: repositories whose configuration is data alone."""

import subprocess
from pathlib import Path

import pytest

from errand.engine.permissions.repository_trust import directs_no_program, names_no_program


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", "-b", "main", tmp_path], check=True)
    for arguments in (["config", "user.name", "Dana"], ["config", "user.email", "d@example.org"], ["add", "-A"]):
        subprocess.run(["git", "-C", tmp_path, *arguments], check=True)
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
    for arguments in (["init", "-q", inner], ["-C", inner, *commit], ["-C", repository, "add", "inner"]):
        subprocess.run(["git", *arguments], check=True, stderr=subprocess.DEVNULL)
    assert not names_no_program(str(repository))


def git(*arguments: str | Path) -> None:
    options = ["-c", "user.name=D", "-c", "user.email=d@e", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", *options, *arguments], check=True, capture_output=True)


@pytest.fixture
def with_submodule(tmp_path: Path) -> Path:
    """A repository with the submodule `libs/inner` and the linked worktree `../linked`."""
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    for folder in (inner, outer):
        git("init", "-q", "-b", "main", folder)
        git("-C", folder, "commit", "-q", "--allow-empty", "-m", "x")
    git("-C", outer, "submodule", "add", inner, "libs/inner")
    git("-C", outer, "worktree", "add", tmp_path / "linked")
    return outer


def test_a_submodule_is_trusted_as_long_as_its_configuration_is_data(with_submodule: Path) -> None:
    folder = with_submodule / "libs" / "inner"
    assert names_no_program(str(with_submodule))
    assert names_no_program(str(folder))
    config = with_submodule / ".git" / "modules" / "libs" / "inner" / "config"
    plain = config.read_text()
    for more in ("[core]\n\tfsmonitor = ./x\n", f"[core]\n\tworktree = {with_submodule}\n"):
        config.write_text(plain + more)
        assert not names_no_program(str(with_submodule))
        assert not names_no_program(str(folder))
    config.write_text(plain)
    assert names_no_program(str(with_submodule))
    (config.parent / "hooks" / "post-index-change").touch()
    assert not names_no_program(str(with_submodule))


def test_a_submodule_that_keeps_its_repository_elsewhere_is_not_trusted(with_submodule: Path) -> None:
    link = with_submodule / "libs" / "inner" / ".git"
    link.write_text(f"gitdir: {with_submodule.parent / 'inner' / '.git'}\n")
    assert not names_no_program(str(with_submodule))
    link.unlink()
    assert names_no_program(str(with_submodule))


def test_a_linked_worktree_is_trusted_if_its_repository_knows_it(with_submodule: Path) -> None:
    linked = with_submodule.parent / "linked"
    assert names_no_program(str(linked))
    other = with_submodule.parent / "other"
    other.mkdir()
    (other / ".git").write_text((linked / ".git").read_text())
    assert not names_no_program(str(other))
    (with_submodule / ".git" / "worktrees" / "linked" / "config.worktree").touch()
    assert not names_no_program(str(linked))


def test_a_linked_worktree_is_not_trusted_where_its_repository_names_a_program(with_submodule: Path) -> None:
    with (with_submodule / ".git" / "config").open("a") as config:
        config.write("[core]\n\tfsmonitor = ./x\n")
    assert not names_no_program(str(with_submodule.parent / "linked"))


def test_npm_and_cargo_are_trusted_where_no_file_directs_them(tmp_path: Path) -> None:
    home, project = str(tmp_path), tmp_path / "work" / "project"
    (project / ".cargo").mkdir(parents=True)
    (tmp_path / ".npmrc").touch()
    assert [directs_no_program(name, str(project), home) for name in ("npm", "cargo", "go")] == [True, True, False]
    (project.parent / ".npmrc").touch()
    (project / ".cargo" / "config.toml").touch()
    assert not directs_no_program("npm", str(project), home)
    assert not directs_no_program("cargo", str(project), home)
