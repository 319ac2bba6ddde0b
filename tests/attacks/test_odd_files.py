"""Special files at every entry point that takes a path: pipes, devices, links, folders, and huge files."""

import os
from pathlib import Path

import pytest

from tests.support.command_line import Errand


def endless(path: Path) -> None:
    """3 GB of zeros that use no disk space."""
    with open(path, "wb") as file:
        file.truncate(3_000_000_000)


@pytest.fixture(params=["pipe", "link to a file", "link to a pipe", "folder"])
def odd(request: pytest.FixtureRequest, workspace: Path) -> Path:
    """Special files in place of a file. The link's target must not change."""
    path = workspace / "odd"
    match request.param:
        case "pipe":
            os.mkfifo(path)
        case "link to a file":
            (workspace / "kept").write_text("kept")
            path.symlink_to("kept")
        case "link to a pipe":
            os.mkfifo(workspace / "pipe")
            path.symlink_to("pipe")
        case _:
            path.mkdir()
    return path


async def test_an_export_replaces_nothing_but_a_file(errand: Errand, odd: Path) -> None:
    before = os.lstat(odd)
    refused = await errand.run("export", "--overwrite", "--to", "odd")
    assert refused.code == 1 and "not a file. Give the name of a file." in refused.err
    assert os.path.samestat(before, os.lstat(odd))


async def test_an_export_does_not_replace_the_database(errand: Errand) -> None:
    refused = await errand.run("export", "--overwrite", "--to", str(errand.home / "errand.db"))
    assert refused.code == 2 and "this folder holds Errand's own data" in refused.err


async def test_no_command_waits_for_a_pipe_or_follows_one(errand: Errand, workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    (workspace / "way to it").symlink_to("pipe")
    for arguments in (
        ("import", "pipe"),
        ("import", "way to it"),
        ("restore", "pipe"),
        ("replay", "pipe"),
        ("personalities", "import", "pipe"),
        ("run", "--answer-schema", "pipe", "say something"),
        ("run", "--attach", "pipe", "say something"),
    ):
        refused = await errand.run(*arguments)
        assert (refused.code, refused.out) == (2, ""), arguments
        assert arguments[-1] in refused.err or "pipe" in refused.err, arguments


@pytest.mark.parametrize("path", ["~nobody-has-this-name/x", "link to itself"])
async def test_a_path_that_leads_nowhere_is_said(errand: Errand, workspace: Path, path: str) -> None:
    (workspace / "link to itself").symlink_to("link to itself")
    for arguments in (
        ("import", path),
        ("restore", path),
        ("personalities", "import", path),
        ("run", "--answer-schema", path, "say something"),
        ("run", "--attach", path, "say something"),
        ("run", "--workspace", path, "say something"),
        ("prompt", "--workspace", path),
    ):
        refused = await errand.run(*arguments)
        assert refused.code == 2 and "Traceback" not in refused.err, arguments


async def test_no_command_writes_over_a_pipe(errand: Errand, workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    for arguments in (
        ("backup", "--to", "pipe"),
        ("personalities", "export", "Coder", "--overwrite", "--to", "pipe"),
    ):
        refused = await errand.run(*arguments)
        assert refused.code == 2 and "it is a named pipe, not a file" in refused.err, arguments
    assert (workspace / "pipe").is_fifo()


async def test_a_prompt_without_end_is_refused(errand: Errand) -> None:
    process = await errand.start("run", "-")
    assert process.stdin is not None and process.stderr is not None
    process.stdin.write(bytes(1_100_000))
    error_output = (await process.stderr.read()).decode()
    assert await process.wait() == 2 and "longer than 1,000,000 bytes" in error_output


async def test_an_engine_does_not_start_on_settings_that_are_a_pipe(tmp_path: Path, workspace: Path) -> None:
    errand = Errand(tmp_path / "home", workspace)
    errand.home.mkdir()
    os.mkfifo(errand.home / "settings.json")
    refused = await errand.run("engine")
    assert refused.code == 1
    assert "settings.json cannot be read: it is a named pipe, not a file. Mend it or move it away." in refused.err


async def test_an_engine_does_not_start_on_settings_without_end(tmp_path: Path, workspace: Path) -> None:
    errand = Errand(tmp_path / "home", workspace)
    errand.home.mkdir()
    endless(errand.home / "settings.json")
    refused = await errand.run("engine")
    assert refused.code == 1 and "settings.json cannot be read: it is larger than 1 MB" in refused.err


async def test_a_client_does_not_wait_for_an_endpoint_file_that_is_a_pipe(tmp_path: Path, workspace: Path) -> None:
    errand = Errand(tmp_path / "home", workspace)
    (errand.home / "run").mkdir(parents=True)
    os.mkfifo(errand.home / "run" / "engine.json")
    stopped = await errand.run("engine", "--stop")
    assert "No engine is running" in stopped.out + stopped.err


async def test_tokens_that_are_a_pipe_share_nothing(errand: Errand, workspace: Path) -> None:
    os.mkfifo(workspace / "tokens")
    refused = await errand.run("share-models", "--port", "0", "--token-file", "tokens")
    assert refused.code == 1 and "it is a named pipe, not a file" in refused.err


async def test_a_database_that_is_a_pipe_is_said_and_not_waited_for(tmp_path: Path, workspace: Path) -> None:
    errand = Errand(tmp_path / "home", workspace)
    errand.home.mkdir()
    os.mkfifo(errand.home / "errand.db")
    for arguments in (("engine",), ("backup",)):
        refused = await errand.run(*arguments)
        assert refused.code == 1 and "errand.db: it is not a file" in refused.err
