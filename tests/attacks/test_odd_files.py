"""Files that are no files at every way in that takes a path: pipes, devices, links, folders, and far too large ones."""

import os
from pathlib import Path

import pytest

from tests.support.errand import Errand


@pytest.fixture(params=["pipe", "link to a file", "link to a pipe", "folder"])
def odd(request: pytest.FixtureRequest, workspace: Path) -> Path:
    """What stands where a file is asked for. The link leads to a file that must stay as it is."""
    place = workspace / "odd"
    match request.param:
        case "pipe":
            os.mkfifo(place)
        case "link to a file":
            (workspace / "kept").write_text("kept")
            place.symlink_to("kept")
        case "link to a pipe":
            os.mkfifo(workspace / "pipe")
            place.symlink_to("pipe")
        case _:
            place.mkdir()
    return place


async def test_an_export_replaces_nothing_but_a_file(errand: Errand, odd: Path) -> None:
    before = os.lstat(odd)
    refused = await errand.run("export", "--overwrite", "--to", "odd")
    assert refused.code == 1 and "not a file. Give the name of a file." in refused.err
    assert os.path.samestat(before, os.lstat(odd))


async def test_an_export_does_not_replace_the_database(errand: Errand) -> None:
    refused = await errand.run("export", "--overwrite", "--to", str(errand.home / "errand.db"))
    assert refused.code == 2 and "this folder holds Errand's own data" in refused.err
