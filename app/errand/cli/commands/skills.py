"""`errand skills`: list, show, install, remove, switch on and off."""

import os
from pathlib import Path
from typing import Annotated

from errand.cli.arguments import UsageError, workspace_path, wrong_arguments
from errand.cli.command import Command
from errand.cli.options import Action, Argument, CommandOptions, Flag, Option
from errand.cli.output import CommandOutput
from errand.cli.terminal.style import Style
from errand.cli.terminal.text import escape_hidden_line
from errand.client.connection import Connection
from errand.client.errors import CallError
from errand.client.launch import connect
from errand.client.texts.skills import file_lines, origin_text, source_text, text_parts
from errand.protocol.skills import (
    SKILL_ENABLE,
    SKILL_INSTALL,
    SKILL_LIST,
    SKILL_PREVIEW,
    SKILL_REMOVE,
    SKILL_RESTORE,
    SKILL_TRUST,
    Skill,
    SkillEnableParams,
    SkillInstallParams,
    SkillListParams,
    SkillPreview,
    SkillPreviewParams,
    SkillRemoveParams,
    SkillRestoreParams,
    SkillTrustParams,
)
from errand.system.paths import Paths
from errand.text.translation import tr, trn

_ACTIONS = (
    Action("list", "list the skills of this folder (the default)"),
    Action(
        "show NAME", "show a skill with its text, files and scripts; also from a FOLDER or an ADDRESS", first="skill"
    ),
    Action(
        "install FOLDER",
        "show a skill, and install it if you confirm; also https://… of a git repository",
        first="folder",
    ),
    Action("remove NAME", "remove an installed skill", first="skill"),
    Action("restore NAME", "restore a removed skill, within 30 days"),
    Action("on NAME", "enable a skill for agents", first="skill"),
    Action("off NAME", "disable a skill", first="skill"),
    Action("trust", "show the skills that this folder brings, and tell agents of them if you confirm"),
    Action("distrust", "do not tell agents of the skills that this folder brings"),
)


class SkillsOptions(CommandOptions, frozen=True, kw_only=True):
    arguments: Annotated[
        tuple[str, ...],
        Argument("WHAT", "list (the default) or another action, and a skill"),
    ] = ()
    path: Annotated[str, Option("--path", "with show and install: the folder of the skill in the source", "DIR")] = ""
    ref: Annotated[str, Option("--ref", "with show and install: a branch or tag", "NAME")] = ""
    workspace: Annotated[
        str | None, Option("--workspace", "use the skills of this folder (default: the current one)", "DIR")
    ] = None
    yes: Annotated[bool, Flag("--yes", "with install, remove and trust: do not ask for confirmation")] = False


async def skills(options: SkillsOptions, paths: Paths, output: CommandOutput) -> int:
    async with await connect(paths, "errand skills") as connection:
        match options.arguments or ("list",):
            case ["list"]:
                await _list(connection, options, output)
            case ["show", which]:
                preview = await _preview(connection, await _source(connection, which, options), options)
                output.result(preview, *_preview_lines(preview, output.style))
            case ["install", source]:
                await _install(connection, _absolute_source(source), options, output)
            case ["remove", name]:
                await _remove(connection, await _named(connection, name, options), options, output)
            case ["restore", name]:
                await _restore(connection, name, output)
            case ["trust" | "distrust" as decision]:
                await _trust(connection, options, output, trusted=decision == "trust")
            case ["on" | "off" as state, name]:
                skill = await _named(connection, name, options)
                params = SkillEnableParams(file=skill.file, is_enabled=state == "on")
                await connection.call(SKILL_ENABLE, params)
                text = tr("{name} is {state} from the next task on.").format(name=skill.name, state=state)
                output.result(params, text)
            case _:
                raise wrong_arguments("skills", _ACTIONS, options.arguments)
    return 0


SKILLS = Command(SkillsOptions, skills, actions=_ACTIONS)


async def _all(connection: Connection, options: SkillsOptions) -> tuple[Skill, ...]:
    return (await connection.call(SKILL_LIST, SkillListParams(workspace=workspace_path(options.workspace)))).skills


async def _list(connection: Connection, options: SkillsOptions, output: CommandOutput) -> None:
    listing = await connection.call(SKILL_LIST, SkillListParams(workspace=workspace_path(options.workspace)))
    empty = tr("No skills yet. Install one: errand skills install FOLDER")
    output.each(listing.skills, lambda skill: _lines(skill, output.style), empty=empty)
    for file in listing.broken:
        output.note(
            tr("errand: {file} was skipped: it does not start with a name and a description.").format(
                file=escape_hidden_line(file)
            )
        )


def _lines(skill: Skill, style: Style) -> list[str]:
    return [
        f"{style.bold(escape_hidden_line(skill.name))}  {escape_hidden_line(skill.description)}",
        f"  {style.dim(origin_text(skill))}",
        f"  {style.dim(escape_hidden_line(skill.file))}",
    ]


async def _named(connection: Connection, name: str, options: SkillsOptions) -> Skill:
    matching = [skill for skill in await _all(connection, options) if name in (skill.name, skill.file)]
    if not matching:
        raise UsageError(tr("No skill is named {name!r}. List them: errand skills").format(name=name))
    if len(matching) > 1:
        files = "\n".join(f"  {skill.file}" for skill in matching)
        raise UsageError(
            tr("{matching} skills are named {name!r}. Choose one by its file:\n{files}").format(
                matching=len(matching), name=name, files=files
            )
        )
    return matching[0]


async def _source(connection: Connection, which: str, options: SkillsOptions) -> str:
    """Return the source to preview: the folder of a skill with this name, a folder (`./x`) or an address."""
    if "/" in which:
        return _absolute_source(which)
    return str(Path((await _named(connection, which, options)).file).parent)


def _absolute_source(source: str) -> str:
    return source if "://" in source else os.path.abspath(os.path.expanduser(source))


async def _preview(connection: Connection, source: str, options: SkillsOptions) -> SkillPreview:
    params = SkillPreviewParams(source=source, path=options.path, ref=options.ref)
    result = await connection.call(SKILL_PREVIEW, params)
    if result.preview is None:
        choices = "\n".join(f"  --path {escape_hidden_line(choice)}" for choice in result.choices)
        raise UsageError(tr("It contains several skills. Choose one:\n{choices}").format(choices=choices))
    return result.preview


def _preview_lines(preview: SkillPreview, style: Style) -> list[str]:
    lines = [f"{style.bold(escape_hidden_line(preview.name))}  {escape_hidden_line(preview.description)}"]
    lines += [style.dim(source_text(preview)), *(f"  {line}" for line in file_lines(preview))]
    for name, text in text_parts(preview):
        lines += [f"\n{style.bold(name)}", *(f"  {line}" for line in text.splitlines())]
    return lines


async def _install(connection: Connection, source: str, options: SkillsOptions, output: CommandOutput) -> None:
    preview = await _preview(connection, source, options)
    for line in _preview_lines(preview, output.style):
        output.line(line)
    if preview.problem:
        raise UsageError(preview.problem)
    question = tr("Install {name}? Agents will be told of it; its scripts run only if you allow them.").format(
        name=preview.name
    )
    await output.confirm(question, yes=options.yes, unchanged=tr("Nothing was installed."))
    params = SkillInstallParams(
        source=preview.source, path=preview.path, ref=preview.ref, fingerprint=preview.fingerprint
    )
    skill = (await connection.call(SKILL_INSTALL, params)).skill
    folder = escape_hidden_line(str(Path(skill.file).parent))
    output.result(skill, tr("Installed {name} in {parent}.").format(name=skill.name, parent=folder))


async def _trust(connection: Connection, options: SkillsOptions, output: CommandOutput, *, trusted: bool) -> None:
    """Decide about the skills of the folder, as they were displayed."""
    workspace = workspace_path(options.workspace)
    listing = await connection.call(SKILL_LIST, SkillListParams(workspace=workspace))
    skills = [skill for skill in listing.skills if skill.origin == "workspace"]
    if not skills:
        raise UsageError(tr("This folder brings no skills."))
    for skill in () if output.as_json else skills:
        for line in await _lines_of_folder(connection, skill, options, output.style):
            output.line(line)
    question = trn(
        "Tell agents of this skill, until it changes?",
        "Tell agents of these {n} skills, until one changes?",
        len(skills),
    )
    await output.confirm(question, yes=options.yes or not trusted, unchanged=tr("Nothing was changed."))
    params = SkillTrustParams(workspace=workspace, fingerprint=listing.fingerprint, trusted=trusted)
    decided = await connection.call(SKILL_TRUST, params)
    text = (
        tr("Agents are told of this from the next task on.")
        if trusted
        else tr("Agents are not told of this from the next task on.")
    )
    output.result(decided, text)


async def _lines_of_folder(connection: Connection, skill: Skill, options: SkillsOptions, style: Style) -> list[str]:
    """Return all of a skill, or what agents are told of one that cannot be displayed."""
    try:
        preview = await _preview(connection, str(Path(skill.file).parent), options)
    except CallError as error:
        return [
            f"{escape_hidden_line(skill.name)}  {escape_hidden_line(skill.description)}",
            f"  {escape_hidden_line(skill.file)}: {escape_hidden_line(str(error))}",
        ]
    return _preview_lines(preview, style)


async def _remove(connection: Connection, skill: Skill, options: SkillsOptions, output: CommandOutput) -> None:
    changed = tr(" Files in it were changed since it was installed.") if skill.is_changed else ""
    folder = escape_hidden_line(str(Path(skill.file).parent))
    question = tr("Remove {folder}?{changed}").format(folder=folder, changed=changed)
    await output.confirm(question, yes=options.yes, unchanged=tr("Nothing was removed."))
    await connection.call(SKILL_REMOVE, SkillRemoveParams(file=skill.file))
    name = escape_hidden_line(skill.name)
    text = tr("Removed {name}. It can be restored for 30 days: errand skills restore {name}")
    output.result(skill, text.format(name=name))


async def _restore(connection: Connection, name: str, output: CommandOutput) -> None:
    """`name` is that of a skill, or its SKILL.md."""
    folder = (await connection.call(SKILL_LIST, SkillListParams())).folder
    file = name if "/" in name else str(Path(folder) / name / "SKILL.md")
    skill = (await connection.call(SKILL_RESTORE, SkillRestoreParams(file=file))).skill
    text = tr("Restored {name} in {parent}.")
    parent = escape_hidden_line(str(Path(skill.file).parent))
    output.result(skill, text.format(name=escape_hidden_line(skill.name), parent=parent))
