"""The skills that agents may use: listed, shown, installed, removed, switched on and off."""

import asyncio
import os
import shutil
from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from errand.engine.agent.prompt.skills import NAME, FoundSkills, find_skills
from errand.engine.agent.prompt.skills import Skill as FoundSkill
from errand.engine.core.errors import Conflict, InvalidParams, NotFound
from errand.engine.core.ids import new_id
from errand.engine.core.skill_state import InstalledSkill, RemovedSkill, SkillState, read_skill_state, write_skill_state
from errand.engine.core.workspace_threads import in_workspace
from errand.engine.skills.contents import SkillContent, SkillContents, check_path, choices_in, files_below, read_folder
from errand.engine.skills.git_source import GitCopy, git_source
from errand.protocol.skills import (
    Skill,
    SkillFile,
    SkillInstallParams,
    SkillListResult,
    SkillPreview,
    SkillPreviewParams,
    SkillPreviewResult,
    SkillScript,
    SkillTrustParams,
)
from errand.system.paths import USER_SKILLS, Paths
from errand.system.regular_file import flush_folder, make_folder
from errand.text.printable import reason

_MAX_SCRIPT_LENGTH, _MAX_SCRIPTS_LENGTH = 60_000, 400_000
_PATIENCE_S = 30.0
# Removed skills can be restored for so long.
_KEPT = timedelta(days=30)


class Skills:
    """`protocols` are those of git that are open. One change at a time."""

    def __init__(self, paths: Paths, home: Path, protocols: Sequence[str] = ("https",)) -> None:
        self._paths = paths
        self._home = home
        self._protocols = tuple(protocols)
        self._changes = asyncio.Lock()

    @property
    def folder(self) -> Path:
        """The folder in which skills are installed."""
        return self._home / USER_SKILLS[0]

    async def listing(self, workspace: str | None) -> SkillListResult:
        """Raises `InvalidParams` for a workspace that is no folder."""
        state = read_skill_state(self._paths.skills)
        folder = Path(workspace) if workspace is not None else self._home

        def look() -> SkillListResult:
            if workspace is not None and not (folder.is_absolute() and folder.is_dir()):
                raise InvalidParams(f"workspace: {workspace!r} is no folder.")
            real = folder.resolve()
            found_skills = find_skills(real if workspace is not None else None, self._home, state.disabled)
            trust = state.trust_of(real, found_skills.fingerprint)
            return SkillListResult(
                skills=tuple(self._listed(found_skills, state, is_trusted=trust == "trusted")),
                folder=str(self.folder),
                broken=tuple(str(file) for file in found_skills.broken),
                fingerprint=found_skills.fingerprint,
                trust=trust,
            )

        return await in_workspace(folder, look, _PATIENCE_S)

    async def trust(self, params: SkillTrustParams) -> SkillListResult:
        """Decide about the skills of a workspace. Raises `Conflict` if they are not those that were displayed."""
        async with self._changes:
            listed = await self.listing(params.workspace)
            if not listed.fingerprint or listed.fingerprint != params.fingerprint:
                raise Conflict("The skills of this folder have changed since you looked at them. Look at them again.")
            real = await in_workspace(Path(params.workspace), Path(params.workspace).resolve, _PATIENCE_S)
            state = read_skill_state(self._paths.skills)
            self._save(state.decided(real, params.fingerprint, is_trusted=params.trusted))
        return await self.listing(params.workspace)

    async def preview(self, params: SkillPreviewParams) -> SkillPreviewResult:
        """Return all of a skill, or the folders of the source that hold one. Raises `InvalidParams`."""
        source, skill, choices, commit = await self._fetched(params.source, params.path, params.ref)
        if skill is None:
            return SkillPreviewResult(choices=choices)
        return SkillPreviewResult(
            preview=SkillPreview(
                name=skill.name,
                description=skill.description,
                source=source.source,
                path=source.path,
                ref=source.ref,
                commit=commit,
                text=skill.text,
                files=tuple(
                    SkillFile(path=file.path, size=len(file.data), is_script=file.is_script) for file in skill.files
                ),
                scripts=_scripts(skill.files),
                fingerprint=skill.fingerprint,
                problem=await asyncio.to_thread(self._problem, skill),
            )
        )

    async def install(self, params: SkillInstallParams) -> Skill:
        """Raises `Conflict` if the files are not those that were shown, or the name is taken."""
        async with self._changes:
            _, skill, _, commit = await self._fetched(params.source, params.path, params.ref)
            if skill is None or skill.fingerprint != params.fingerprint:
                raise Conflict("The skill is not what was shown: its files have changed since. Look at it once more.")
            if problem := await asyncio.to_thread(self._problem, skill):
                raise Conflict(problem)
            target = self.folder / skill.name
            await in_workspace(self._home, lambda: self._write(skill, target), _PATIENCE_S)
            entry = InstalledSkill(
                source=params.source,
                path=params.path,
                commit=commit,
                fingerprint=skill.fingerprint,
                installed_at=datetime.now(UTC),
            )
            file = str(target / NAME)
            state = read_skill_state(self._paths.skills)
            self._save(
                msgspec.structs.replace(
                    state,
                    installed={**state.installed, file: entry},
                    disabled=tuple(path for path in state.disabled if path != file),
                )
            )
        return await self._installed(file)

    async def remove(self, file: str) -> None:
        """Move an installed skill away. Raises `NotFound` or `InvalidParams`."""
        async with self._changes:
            state = read_skill_state(self._paths.skills)
            folder = Path(file).parent
            if file not in state.installed:
                skills = (await self.listing(None)).skills
                if any(skill.file == file for skill in skills):
                    raise InvalidParams(f"{folder} was not installed by Errand. Delete the folder yourself.")
                raise NotFound(f"No skill was installed as {file}.")
            now = datetime.now(UTC)
            moved = RemovedSkill(state.installed[file], new_id("skill"), now)
            removed_folder = self._paths.removed_skills / moved.folder
            was_there = await in_workspace(self._home, lambda: _moved(folder, removed_folder), _PATIENCE_S)
            removed = {name: skill for name, skill in state.removed.items() if now - skill.removed_at < _KEPT}
            new_state = SkillState(
                {name: entry for name, entry in state.installed.items() if name != file},
                tuple(path for path in state.disabled if path != file),
                {**removed, file: moved} if was_there else removed,
            )
            try:
                self._save(new_state)
            except InvalidParams:
                await in_workspace(self._home, lambda: _moved(removed_folder, folder), _PATIENCE_S)
                raise
            folders = {skill.folder for skill in new_state.removed.values()}
            await in_workspace(self._home, lambda: _delete_others(self._paths.removed_skills, folders), _PATIENCE_S)

    async def restore(self, file: str) -> Skill:
        """Put a removed skill back. Raises `NotFound`, or `Conflict` if its name is taken by now."""
        async with self._changes:
            state = read_skill_state(self._paths.skills)
            removed = state.removed.get(file)
            if removed is None:
                raise NotFound(f"No skill was removed as {file}, or it was more than {_KEPT.days} days ago.")
            name = Path(file).parent.name
            if problem := await asyncio.to_thread(self._conflict_with_name, name):
                raise Conflict(problem)
            removed_folder = self._paths.removed_skills / removed.folder
            if not await in_workspace(self._home, lambda: _moved(removed_folder, Path(file).parent), _PATIENCE_S):
                raise NotFound(f"The files of {name} are not there any more.")
            left = {name: skill for name, skill in state.removed.items() if name != file}
            installed = {**state.installed, file: removed.skill}
            self._save(msgspec.structs.replace(state, installed=installed, removed=left))
        return await self._installed(file)

    async def enable(self, file: str, *, is_enabled: bool) -> None:
        """Switch a skill on or off, from the next task on. Raises `InvalidParams`."""
        if not os.path.isabs(file) or os.path.basename(file) != NAME or not file.isprintable():
            raise InvalidParams(f"file: {file!r} is no path of a {NAME}.")
        async with self._changes:
            state = read_skill_state(self._paths.skills)
            others = tuple(path for path in state.disabled if path != file)
            self._save(msgspec.structs.replace(state, disabled=others if is_enabled else (*others, file)))

    async def _installed(self, file: str) -> Skill:
        listed = (await self.listing(None)).skills
        match = next((skill for skill in listed if skill.file == file), None)
        if match is None:
            raise NotFound(f"{file} is not there any more.")
        return match

    async def _fetched(
        self, source: str, path: str, ref: str
    ) -> tuple[SkillPreviewParams, SkillContents | None, tuple[str, ...], str]:
        """Return the source as it was understood, the skill or the folders that hold one, and the commit of a
        repository.
        """
        if os.path.isabs(source):
            skill, choices = await in_workspace(Path(source), lambda: _in_folder(Path(source), path), _PATIENCE_S)
            return SkillPreviewParams(source=source, path=path), skill, choices, ""
        origin = git_source(source, path, ref, self._protocols)
        understood = SkillPreviewParams(source=origin.address, path=origin.path, ref=origin.ref)
        async with GitCopy(origin, self._paths.staging, self._protocols) as copy:
            choices = await copy.choices()
            if not origin.path and "" not in choices:
                if not choices:
                    raise InvalidParams(f"{origin.address} has no {NAME}, so there is no skill in it.")
                return understood, None, choices, copy.commit
            return understood, await copy.read(), (), copy.commit

    def _problem(self, found: SkillContents) -> str:
        """Return why it cannot be installed beside the skills of the person, or an empty text. Blocking."""
        return self._conflict_with_name(found.name)

    def _conflict_with_name(self, name: str) -> str:
        taken = next((skill for skill in find_skills(None, self._home).skills if skill.name == name), None)
        if taken is not None:
            return f"There is a skill {name} already, in {taken.file.parent}. Remove it first."
        if os.path.lexists(self.folder / name):
            return f"{self.folder / name} is there already. Remove it first."
        return ""

    def _write(self, skill: SkillContents, target: Path) -> None:
        """All files at once: a folder that is renamed when it is complete. Blocking."""
        try:
            make_folder(self.folder)
            # Beside the skills, so that no unfinished one is found among them.
            staged = self.folder.parent / f".{new_id('skill')}"
            try:
                for file in skill.files:
                    path = staged / file.path
                    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    with path.open("xb") as written:
                        written.write(file.data)
                        written.flush()
                        os.fsync(written.fileno())
                    path.chmod(0o700 if file.is_executable else 0o600)
                os.rename(staged, target)
                flush_folder(self.folder)
            except BaseException:
                shutil.rmtree(staged, ignore_errors=True)
                raise
        except OSError as error:
            raise InvalidParams(f"The skill cannot be written to {target}: {error.strerror}.") from error

    def _save(self, state: SkillState) -> None:
        try:
            write_skill_state(self._paths.skills, state)
        except OSError as error:
            raise InvalidParams(f"{self._paths.skills} cannot be written: {error.strerror}.") from error

    def _listed(self, found: FoundSkills, state: SkillState, *, is_trusted: bool) -> list[Skill]:
        nearest: dict[str, str] = {}
        listed: list[Skill] = []
        for skill in found.skills:
            file = str(skill.file)
            is_enabled = file not in state.disabled
            is_used = is_enabled and (skill.is_own or is_trusted)
            first = nearest.setdefault(skill.name, file) if is_used else file
            described = self._skill(skill, state.installed.get(file), is_enabled, "" if first == file else first)
            listed.append(msgspec.structs.replace(described, is_trusted=skill.is_own or is_trusted))
        return listed

    def _skill(self, skill: FoundSkill, installed: InstalledSkill | None, is_enabled: bool, shadowed_by: str) -> Skill:
        described = Skill(
            name=skill.name,
            description=skill.description,
            file=str(skill.file),
            origin="user" if skill.is_own else "workspace",
            is_enabled=is_enabled,
            shadowed_by=shadowed_by,
        )
        try:
            contents = read_folder(skill.file.parent)
        except InvalidParams:
            return described  # it can be used, though not installed elsewhere
        described = msgspec.structs.replace(described, scripts=sum(file.is_script for file in contents.files))
        if installed is None:
            return described
        return msgspec.structs.replace(
            described,
            origin="installed",
            source=installed.source,
            path=installed.path,
            commit=installed.commit,
            installed_at=installed.installed_at,
            is_changed=contents.fingerprint != installed.fingerprint,
        )


def _moved(folder: Path, place: Path) -> bool:
    """Move a folder, also to another file system; False if it is not there. Blocking."""
    if not os.path.lexists(folder):
        return False
    try:
        make_folder(place.parent)
        shutil.move(folder, place)
    except (OSError, shutil.Error) as error:
        raise InvalidParams(f"{folder} cannot be moved to {place}: {reason(error)}.") from error
    return True


def _delete_others(folder: Path, kept: Collection[str]) -> None:
    """Delete what was removed long ago. Blocking."""
    with suppress(OSError):
        for name in os.listdir(folder):
            if name not in kept:
                shutil.rmtree(folder / name, ignore_errors=True)


def _in_folder(folder: Path, path: str) -> tuple[SkillContents | None, tuple[str, ...]]:
    if path:
        check_path(path.strip("/"))
    start = folder / path.strip("/")
    if not start.is_dir():
        raise InvalidParams(f"There is no folder {start}.")
    if (start / NAME).is_file():
        return read_folder(start), ()
    choices = choices_in(files_below(start))
    if not choices:
        raise InvalidParams(f"{start} has no {NAME}, so there is no skill in it.")
    return None, tuple(f"{path.strip('/')}/{choice}" if path else choice for choice in choices)


def _scripts(files: Sequence[SkillContent]) -> tuple[SkillScript, ...]:
    """Return the texts of the scripts, in bounds; a binary program has none."""
    scripts: list[SkillScript] = []
    shown_length = 0
    for file in files:
        if not file.is_script:
            continue
        room = min(_MAX_SCRIPT_LENGTH, max(0, _MAX_SCRIPTS_LENGTH - shown_length))
        text = "" if b"\0" in file.data else file.data[:room].decode("utf-8", "replace")
        shown_length += len(text)
        scripts.append(SkillScript(path=file.path, text=text, is_cut=len(file.data) > room))
    return tuple(scripts)
