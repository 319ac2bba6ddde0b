"""Skills: shown whole before they are installed, from folders and from git repositories; what is hostile is refused."""

import asyncio
import errno
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from errand.engine.core.errors import Conflict, EngineError, InvalidParams, NotFound
from errand.engine.core.skill_state import SkillState
from errand.engine.skills.skills import Skills
from errand.protocol.skills import SkillInstallParams, SkillPreview, SkillPreviewParams, SkillTrustParams
from errand.system.paths import Paths
from errand.system.regular_file import make_folder

HEAD = "---\nname: report\ndescription: Makes reports.\n---\nRun `scripts/make.py`.\n"


def written(folder: Path, text: str = HEAD) -> Path:
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text(text)
    (folder / "scripts/make.py").write_text("print('made')\n")
    (folder / "scripts/run").write_text("#!/bin/sh\necho run\n")
    (folder / "notes.txt").write_text("notes")
    return folder


def git(folder: Path, *arguments: str) -> str:
    process = subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"},
    )
    return process.stdout.strip()


def repository(folder: Path) -> str:
    """The address of a repository with all files of the folder."""
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return folder.as_uri()


class Ground:
    """An empty home directory, and a service that also takes repositories on this disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.paths = Paths(self.folder / "data")
        self.paths.prepare()
        self.home = self.folder / "home"
        self.home.mkdir()
        self.skills = Skills(self.paths, self.home, ("https", "file"))

    async def preview(self, source: str, path: str = "", ref: str = "") -> SkillPreview:
        preview = (await self.skills.preview(SkillPreviewParams(source=source, path=path, ref=ref))).preview
        assert preview is not None
        return preview

    async def install(self, preview: SkillPreview) -> Path:
        params = SkillInstallParams(
            source=preview.source, path=preview.path, ref=preview.ref, fingerprint=preview.fingerprint
        )
        return Path((await self.skills.install(params)).file)

    def left(self) -> list[str]:
        """List the files next to the folder of skills, and the copies of repositories."""
        config = self.skills.folder.parent
        return [path.name for path in config.iterdir() if path.name != "skills"] + os.listdir(self.paths.staging)


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    new_ground = Ground(tmp_path)
    make_folder(new_ground.paths.staging)
    return new_ground


async def test_a_skill_of_a_folder_is_shown_whole_and_installed_as_shown(ground: Ground) -> None:
    source = written(ground.folder / "source")
    preview = await ground.preview(str(source))
    assert (preview.name, preview.description, preview.text, preview.problem) == ("report", "Makes reports.", HEAD, "")
    assert [(file.path, file.size, file.is_script) for file in preview.files] == [
        ("SKILL.md", len(HEAD), False),
        ("notes.txt", 5, False),
        ("scripts/make.py", 14, True),
        ("scripts/run", 19, True),
    ]
    assert [(script.path, script.text, script.is_cut) for script in preview.scripts] == [
        ("scripts/make.py", "print('made')\n", False),
        ("scripts/run", "#!/bin/sh\necho run\n", False),
    ]
    assert not ground.skills.folder.exists(), "nothing was installed yet"

    file = await ground.install(preview)
    assert file == ground.home / ".config/errand/skills/report/SKILL.md"
    assert (file.parent / "scripts/make.py").read_text() == "print('made')\n"
    assert os.access(file.parent / "scripts/run", os.X_OK) and not os.access(file, os.X_OK)
    (listed,) = (await ground.skills.listing(None)).skills
    assert (listed.origin, listed.source, listed.scripts, listed.is_changed) == ("installed", str(source), 2, False)
    assert ground.left() == []


async def test_a_skill_of_a_repository_is_installed_from_its_commit(ground: Ground) -> None:
    source = written(ground.folder / "source")
    address = repository(source)
    preview = await ground.preview(address)
    assert (preview.commit, len(preview.files)) == (git(source, "rev-parse", "HEAD"), 4)
    file = await ground.install(preview)
    (listed,) = (await ground.skills.listing(None)).skills
    assert (listed.source, listed.commit) == (address, preview.commit)
    assert not (file.parent / ".git").exists() and ground.left() == []


async def test_one_of_several_skills_of_a_repository_is_chosen(ground: Ground) -> None:
    for name in ("a", "b"):
        written(ground.folder / "source/skills" / name, HEAD.replace("report", name))
    for source in (repository(ground.folder / "source"), str(ground.folder / "source")):
        answer = await ground.skills.preview(SkillPreviewParams(source=source))
        assert (answer.preview, answer.choices) == (None, ("skills/a", "skills/b"))
        assert (await ground.preview(source, "skills/b")).name == "b"
        with pytest.raises(InvalidParams):
            await ground.preview(source, "skills/c")


async def test_a_branch_or_tag_can_be_named(ground: Ground) -> None:
    source = written(ground.folder / "source")
    address = repository(source)
    git(source, "tag", "v1")
    (source / "notes.txt").write_text("newer notes")
    git(source, "commit", "-qam", "second")
    old, new = await ground.preview(address, ref="v1"), await ground.preview(address)
    assert old.fingerprint != new.fingerprint
    with pytest.raises(InvalidParams, match="could not be fetched"):
        await ground.preview(address, ref="v2")


async def test_what_changed_since_it_was_shown_is_not_installed(ground: Ground) -> None:
    source = written(ground.folder / "source")
    preview = await ground.preview(str(source))
    (source / "scripts/make.py").write_text("import os\n")
    with pytest.raises(Conflict, match="is not what was shown"):
        await ground.install(preview)
    (source / "scripts/make.py").write_text("print('made')\n")
    (source / "notes.txt").chmod(0o755)
    with pytest.raises(Conflict):
        await ground.install(preview)
    assert not ground.skills.folder.exists()


async def test_a_name_that_is_taken_is_said_before_and_refused(ground: Ground) -> None:
    source = written(ground.folder / "source")
    await ground.install(await ground.preview(str(source)))
    again = await ground.preview(str(source))
    assert "There is a skill report already" in again.problem
    with pytest.raises(Conflict, match="There is a skill report already"):
        await ground.install(again)
    other = written(ground.home / ".agents/skills/mine", HEAD.replace("report", "mine"))
    theirs = await ground.preview(str(written(ground.folder / "theirs", HEAD.replace("report", "mine"))))
    assert str(other) in theirs.problem


@pytest.mark.parametrize("name", ["../../evil", "..", "a/b", "con", "-rf", ".hidden", "a b", "x" * 65, "é"])
async def test_a_name_that_is_no_folder_name_is_refused(ground: Ground, name: str) -> None:
    source = written(ground.folder / "source", HEAD.replace("report", f'"{name}"'))
    with pytest.raises(InvalidParams, match="cannot be that of a folder"):
        await ground.preview(str(source))


def _link_out(folder: Path) -> None:
    (folder / "passwd").symlink_to("/etc/passwd")


def _link_up(folder: Path) -> None:
    (folder / "scripts/up").symlink_to("../../../secret")
    (folder.parent.parent / "secret").write_text("s")


def _link_to_folder(folder: Path) -> None:
    (folder / "all").symlink_to("/etc")


def _many(folder: Path) -> None:
    for number in range(301):
        (folder / f"{number}.txt").write_text("")


def _large(folder: Path) -> None:
    (folder / "large").write_bytes(b"0" * 5_000_001)


def _deep(folder: Path) -> None:
    deep_folder = folder.joinpath(*"abcdefgh")
    deep_folder.mkdir(parents=True)
    (deep_folder / "file").write_text("")


def _odd_name(folder: Path) -> None:
    (folder / "a\nb").write_text("")


def _no_text(folder: Path) -> None:
    (folder / "SKILL.md").write_bytes(b"---\nname: a\ndescription: \xff\n---\n")


def _no_front_matter(folder: Path) -> None:
    (folder / "SKILL.md").write_text("# A skill\n")


def _no_skill(folder: Path) -> None:
    (folder / "SKILL.md").unlink()


HOSTILE = (
    (_link_out, "leads out of the folder"),
    (_link_up, "leads out of the folder"),
    (_link_to_folder, "leads out of the folder"),
    (_many, "more than 300 files"),
    (_large, "too large"),
    (_deep, "unusual name"),
    (_odd_name, "unusual name"),
    (_no_text, "not UTF-8"),
    (_no_front_matter, "front matter"),
    (_no_skill, "has no SKILL.md"),
)


@pytest.mark.parametrize(("spoil", "why"), HOSTILE)
async def test_a_hostile_or_broken_skill_is_refused_with_its_reason(
    ground: Ground, spoil: Callable[[Path], None], why: str
) -> None:
    source = written(ground.folder / "a/source")
    spoil(source)
    with pytest.raises(InvalidParams, match=why):
        await ground.preview(str(source))
    with pytest.raises(InvalidParams, match=why):
        await ground.preview(repository(source))
    assert os.listdir(ground.paths.staging) == []


async def test_a_pipe_in_a_folder_is_refused_at_once(ground: Ground) -> None:
    source = written(ground.folder / "source")
    os.mkfifo(source / "pipe")
    with pytest.raises(InvalidParams, match="neither a file nor a folder"):
        await ground.preview(str(source))


async def test_links_within_the_skill_become_files(ground: Ground) -> None:
    source = written(ground.folder / "source")
    (source / "same.py").symlink_to("scripts/make.py")
    for preview in (await ground.preview(str(source)), await ground.preview(repository(source))):
        assert any(file.path == "same.py" and file.size == 14 for file in preview.files)
    file = await ground.install(preview)
    assert not (file.parent / "same.py").is_symlink()


async def test_a_repository_in_the_repository_is_refused(ground: Ground) -> None:
    inner = repository(written(ground.folder / "inner"))
    source = written(ground.folder / "source")
    git(source, "init", "-q", "-b", "main")
    git(source, "submodule", "add", "-q", inner, "sub")
    with pytest.raises(InvalidParams, match="is another repository"):
        await ground.preview(repository(source))


async def test_nothing_of_a_repository_runs(ground: Ground) -> None:
    source = written(ground.folder / "source")
    (source / ".gitattributes").write_text("* filter=evil\n")
    address = repository(source)
    marker = ground.folder / "ran"
    hook = source / ".git/hooks/post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {marker}\n")
    hook.chmod(0o755)
    config = ground.home / ".gitconfig"
    config.write_text(f'[filter "evil"]\n\tsmudge = touch {marker}\n[core]\n\thooksPath = {hook.parent}\n')
    await ground.install(await ground.preview(address))
    assert not marker.exists()


@pytest.mark.parametrize(
    "address",
    [
        "http://example.org/a.git",
        "ssh://git@example.org/a.git",
        "git@example.org:a.git",
        "ext::sh -c 'touch x'",
        "--upload-pack=touch x",
        "https://user:pass@example.org/a.git",
        "https://example.org/a.git?x",
        "https://ex ample.org/a",
        "relative/folder",
        "",
    ],
)
async def test_only_plain_https_addresses_are_opened(ground: Ground, address: str) -> None:
    with pytest.raises(InvalidParams):
        await Skills(ground.paths, ground.home).preview(SkillPreviewParams(source=address))


async def test_a_repository_on_this_disk_is_no_address(ground: Ground) -> None:
    address = repository(written(ground.folder / "source"))
    with pytest.raises(InvalidParams, match="begins with https://"):
        await Skills(ground.paths, ground.home).preview(SkillPreviewParams(source=address))


@pytest.mark.parametrize(("path", "ref"), [("../x", ""), ("a/../../x", ""), ("", "--upload-pack=x"), ("", "a..b")])
async def test_a_path_or_branch_that_is_none_is_refused(ground: Ground, path: str, ref: str) -> None:
    address = repository(written(ground.folder / "source"))
    with pytest.raises(InvalidParams):
        await ground.preview(address, path, ref)
    if path:
        with pytest.raises(InvalidParams):
            await ground.preview(str(ground.folder / "source"), path)


async def test_an_address_that_leads_nowhere_says_so(ground: Ground) -> None:
    with pytest.raises(InvalidParams, match="could not be fetched"):
        await ground.preview((ground.folder / "nothing").as_uri())


async def test_only_installed_skills_are_removed(ground: Ground) -> None:
    file = await ground.install(await ground.preview(str(written(ground.folder / "source"))))
    own = written(ground.home / ".agents/skills/mine", HEAD.replace("report", "mine")) / "SKILL.md"
    with pytest.raises(InvalidParams, match="Delete the folder yourself"):
        await ground.skills.remove(str(own))
    with pytest.raises(NotFound):
        await ground.skills.remove("/etc/SKILL.md")
    await ground.skills.remove(str(file))
    assert not file.parent.exists() and own.exists() and ground.left() == []
    assert [skill.name for skill in (await ground.skills.listing(None)).skills] == ["mine"]
    await ground.install(await ground.preview(str(ground.folder / "source")))


async def test_removed_skill_comes_back_with_its_files_as_they_were(ground: Ground) -> None:
    file = await ground.install(await ground.preview(str(written(ground.folder / "source"))))
    (before,) = (await ground.skills.listing(None)).skills
    (file.parent / "notes.txt").write_text("mine")
    await ground.skills.remove(str(file))
    assert (await ground.skills.listing(None)).skills == () and len(os.listdir(ground.paths.removed_skills)) == 1
    back = await Skills(ground.paths, ground.home).restore(str(file))  # also by a later engine
    assert back == msgspec.structs.replace(before, is_changed=True)
    assert (file.parent / "notes.txt").read_text() == "mine" and os.access(file.parent / "scripts/run", os.R_OK)
    assert os.listdir(ground.paths.removed_skills) == []
    with pytest.raises(NotFound):
        await ground.skills.restore(str(file))


async def test_removed_skill_is_not_put_over_another_of_its_name(ground: Ground) -> None:
    preview = await ground.preview(str(written(ground.folder / "source")))
    file = await ground.install(preview)
    await ground.skills.remove(str(file))
    await ground.install(preview)
    with pytest.raises(Conflict, match="Remove it first"):
        await ground.skills.restore(str(file))
    await ground.skills.remove(str(file))
    assert len(os.listdir(ground.paths.removed_skills)) == 1  # the last one of a name is kept
    assert (await ground.skills.restore(str(file))).name == "report"


async def test_skill_whose_removal_cannot_be_stored_stays(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: Path, state: SkillState) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    file = await ground.install(await ground.preview(str(written(ground.folder / "source"))))
    before = ground.paths.skills.read_bytes()
    monkeypatch.setattr("errand.engine.skills.skills.write_skill_state", full)
    with pytest.raises(InvalidParams, match="No space left"):
        await ground.skills.remove(str(file))
    assert file.exists() and ground.paths.skills.read_bytes() == before


async def test_a_skill_whose_files_were_changed_says_so(ground: Ground) -> None:
    file = await ground.install(await ground.preview(str(written(ground.folder / "source"))))
    (file.parent / "notes.txt").write_text("mine")
    (listed,) = (await ground.skills.listing(None)).skills
    assert listed.is_changed


async def test_skills_of_the_workspace_come_first_and_shadow_others(ground: Ground) -> None:
    workspace = ground.folder / "work"
    near = written(workspace / ".agents/skills/report")
    file = await ground.install(await ground.preview(str(near)))
    listing = await ground.skills.listing(str(workspace))
    assert (listing.trust, [skill.is_trusted for skill in listing.skills]) == ("unknown", [False, True])
    params = SkillTrustParams(workspace=str(workspace), fingerprint=listing.fingerprint, trusted=True)
    listed = (await ground.skills.trust(params)).skills
    assert [(skill.origin, skill.shadowed_by) for skill in listed] == [
        ("workspace", ""),
        ("installed", str(near / "SKILL.md")),
    ]
    await ground.skills.enable(str(near / "SKILL.md"), is_enabled=False)
    listed = (await ground.skills.listing(str(workspace))).skills
    assert [(skill.is_enabled, skill.shadowed_by) for skill in listed] == [(False, ""), (True, "")]
    await ground.skills.enable(str(near / "SKILL.md"), is_enabled=True)
    await ground.skills.enable(str(file), is_enabled=False)
    listed = (await ground.skills.listing(str(workspace))).skills
    assert [skill.is_enabled for skill in listed] == [True, False]


async def test_what_is_no_skill_cannot_be_switched_off(ground: Ground) -> None:
    for file in ("SKILL.md", "/etc/passwd", "/a\n/SKILL.md"):
        with pytest.raises(InvalidParams):
            await ground.skills.enable(file, is_enabled=False)


async def test_two_installations_at_once_leave_one_skill(ground: Ground) -> None:
    preview = await ground.preview(str(written(ground.folder / "source")))
    done = await asyncio.gather(ground.install(preview), ground.install(preview), return_exceptions=True)
    assert sorted(type(outcome).__name__ for outcome in done) == ["Conflict", "PosixPath"]
    assert ground.left() == []


async def test_a_cancelled_fetch_leaves_nothing(ground: Ground) -> None:
    address = repository(written(ground.folder / "source"))
    fetching = asyncio.ensure_future(ground.preview(address))
    while not any(ground.paths.staging.iterdir()):  # noqa: ASYNC110 -- git makes it, and tells nobody
        await asyncio.sleep(0)
    fetching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await fetching
    assert os.listdir(ground.paths.staging) == []


async def test_a_broken_record_of_skills_is_named(ground: Ground) -> None:
    ground.paths.skills.write_text("{")
    with pytest.raises(EngineError, match=r"skills\.json cannot be read"):
        await ground.skills.listing(None)
