"""`errand skills`: a skill is shown, installed, run under the policy, switched off and removed."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.support.command_line import Errand
from tests.support.model_server import Call, ModelServer, Reply

if sys.platform == "win32":
    pytest.skip("pseudo-terminals of POSIX", allow_module_level=True)

from tests.support.screens import PseudoTerminal

MODEL = ("--model", "openai_compatible/test-model", "--api-base")
TEXT = "---\nname: report\ndescription: Makes reports.\n---\nRun scripts/make with a name.\n"
SCRIPT = '#!/bin/sh\necho "report of $1 in $(dirname "$0")" > "$1.txt"\ntouch "$0.mine" 2>&1\n'


@pytest.fixture
def source(own_errand: Errand, tmp_path: Path) -> Path:
    """A skill; the person's home directory is an own one."""
    home, folder = tmp_path / "person", tmp_path / "source"
    home.mkdir()
    own_errand.environment["HOME"] = str(home)
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text(TEXT)
    (folder / "scripts/make").write_text(SCRIPT)
    return folder


async def test_a_skill_is_shown_installed_switched_off_and_removed(own_errand: Errand, source: Path) -> None:
    assert "No skills yet" in (await own_errand.run("skills")).err
    refused = await own_errand.run("skills", "install", str(source))
    assert (refused.code, "Confirm with --yes" in refused.err) == (2, True)
    assert "Run scripts/make with a name." in refused.out and "(script)" in refused.out and "touch" in refused.out
    assert "No skills yet" in (await own_errand.run("skills")).err

    installed = await own_errand.run("skills", "install", str(source), "--yes")
    assert installed.code == 0 and "Installed report in" in installed.out
    listed = await own_errand.run("skills")
    assert f"installed from {source}" in listed.out and "1 script" in listed.out
    assert "`" in (await own_errand.run("prompt")).out and "Makes reports." in (await own_errand.run("prompt")).out
    assert (await own_errand.run("skills", "show", "report")).out.startswith("report  Makes reports.")

    assert (await own_errand.run("skills", "off", "report")).code == 0
    assert "Makes reports." not in (await own_errand.run("prompt")).out
    assert (await own_errand.run("skills", "on", "report")).code == 0
    assert "Makes reports." in (await own_errand.run("prompt")).out

    assert (await own_errand.run("skills", "remove", "report")).code == 2
    assert (await own_errand.run("skills", "remove", "report", "--yes")).code == 0
    assert "No skill is named" in (await own_errand.run("skills", "remove", "report", "--yes")).err
    back = await own_errand.run("skills", "restore", "report")
    assert (back.code, "Restored report in" in back.out) == (0, True)
    assert "Makes reports." in (await own_errand.run("prompt")).out
    assert (await own_errand.run("skills", "restore", "report")).code == 2


async def test_a_model_runs_the_script_of_a_skill_after_an_ask_and_then_without(
    own_errand: Errand, source: Path, workspace: Path
) -> None:
    assert (await own_errand.run("skills", "install", str(source), "--yes")).code == 0
    script = Path(own_errand.environment["HOME"], ".config/errand/skills/report/scripts/make")
    replies = [Reply(calls=(Call("shell", {"command": f"{script} {name}"}),)) for name in ("june", "july")]
    async with (
        ModelServer(turns=[*replies, Reply(text="Done.")]) as server,
        PseudoTerminal(("run", *MODEL, server.url, "report"), own_errand.folder, own_errand.environment) as screen,
    ):
        await screen.shows("is a script of a skill")
        await screen.shows("allow? a c w p u d r >", then="p\r")
        assert await screen.ended() == 0
    assert "report of june" in (workspace / "june.txt").read_text()
    assert (workspace / "july.txt").exists(), "the second call was covered by the first answer"
    if shutil.which("bwrap"):
        assert not (script.parent / "make.mine").exists(), "the sandbox keeps the skill as it was installed"


async def test_skills_of_a_folder_are_used_after_they_were_trusted_as_they_are(
    own_errand: Errand, source: Path, workspace: Path
) -> None:
    assert (await own_errand.run("skills", "trust")).code == 2
    folder = workspace / ".agents/skills/report"
    shutil.copytree(source, folder)
    assert "nobody has trusted" in (await own_errand.run("skills")).out
    assert "Makes reports." not in (await own_errand.run("prompt")).out
    refused = await own_errand.run("skills", "trust")
    assert (refused.code, "Confirm with --yes" in refused.err, "touch" in refused.out) == (2, True, True)
    assert (await own_errand.run("skills", "trust", "--yes")).code == 0
    assert "Makes reports." in (await own_errand.run("prompt")).out
    assert "nobody has trusted" not in (await own_errand.run("skills")).out
    (folder / "SKILL.md").write_text(TEXT + "More.\n")
    assert "Makes reports." not in (await own_errand.run("prompt")).out
    assert (await own_errand.run("skills", "trust", "--yes")).code == 0
    assert (await own_errand.run("skills", "distrust")).code == 0
    assert "Makes reports." not in (await own_errand.run("prompt")).out
