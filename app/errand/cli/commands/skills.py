"""`errand skills`: list, show, install, remove, switch on and off."""

import os
from pathlib import Path
from typing import Annotated

import msgspec

from errand.cli.arguments import UsageError, workspace_path, wrong_words
from errand.cli.command import Command
from errand.cli.options import Action, Argument, CommandOptions, Flag, Option
from errand.cli.terminal.terminal import Terminal
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
    words: Annotated[
        tuple[str, ...],
        Argument("WHAT", "list (the default) or another action, and a skill"),
    ] = ()
    path: Annotated[str, Option("--path", "with show and install: the folder of the skill in the source", "DIR")] = ""
    ref: Annotated[str, Option("--ref", "with show and install: a branch or tag", "NAME")] = ""
    workspace: Annotated[
        str | None, Option("--workspace", "use the skills of this folder (default: the current one)", "DIR")
    ] = None
    yes: Annotated[bool, Flag("--yes", "with install, remove and trust: do not ask for confirmation")] = False
    json: Annotated[bool, Flag("--json", "with list and show: print JSON lines")] = False


async def skills(options: SkillsOptions, paths: Paths, terminal: Terminal) -> int:
    async with await connect(paths, "errand skills") as connection:
        match options.words or ("list",):
            case ["list"]:
                await _list(connection, options, terminal)
            case ["show", which]:
                _show(await _preview(connection, await _source(connection, which, options), options), options, terminal)
            case ["install", source]:
                await _install(connection, _place(source), options, terminal)
            case ["remove", name]:
                await _remove(connection, await _named(connection, name, options), options, terminal)
            case ["restore", name]:
                await _restore(connection, name, terminal)
            case ["trust" | "distrust" as decision]:
                await _trust(connection, options, terminal, trusted=decision == "trust")
            case ["on" | "off" as state, name]:
                skill = await _named(connection, name, options)
                await connection.call(SKILL_ENABLE, SkillEnableParams(file=skill.file, is_enabled=state == "on"))
                terminal.line(tr("{name} is {state} from the next task on.").format(name=skill.name, state=state))
            case _:
                raise wrong_words("skills", _ACTIONS, options.words)
    return 0


SKILLS = Command(SkillsOptions, skills, actions=_ACTIONS)


async def _all(connection: Connection, options: SkillsOptions) -> tuple[Skill, ...]:
    found = await connection.call(SKILL_LIST, SkillListParams(workspace=workspace_path(options.workspace)))
    return found.skills


async def _list(connection: Connection, options: SkillsOptions, terminal: Terminal) -> None:
    found = await connection.call(SKILL_LIST, SkillListParams(workspace=workspace_path(options.workspace)))
    style = terminal.style
    for skill in found.skills:
        if options.json:
            terminal.line(msgspec.json.encode(skill).decode())
            continue
        terminal.line(f"{style.bold(escape_hidden_line(skill.name))}  {escape_hidden_line(skill.description)}")
        terminal.line(f"  {style.dim(origin_text(skill))}")
        terminal.line(f"  {style.dim(escape_hidden_line(skill.file))}")
    if not found.skills and not options.json:
        terminal.note(tr("No skills yet. Install one: errand skills install FOLDER"))
    for file in found.broken:
        terminal.note(
            tr("errand: {file} was skipped: it does not start with a name and a description.").format(
                file=escape_hidden_line(file)
            )
        )


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
    """What to preview: a skill by its name, a folder (`./x`) or an address."""
    if "/" in which:
        return _place(which)
    return str(Path((await _named(connection, which, options)).file).parent)


def _place(source: str) -> str:
    return source if "://" in source else os.path.abspath(os.path.expanduser(source))


async def _preview(connection: Connection, source: str, options: SkillsOptions) -> SkillPreview:
    params = SkillPreviewParams(source=source, path=options.path, ref=options.ref)
    found = await connection.call(SKILL_PREVIEW, params)
    if found.preview is None:
        choices = "\n".join(f"  --path {escape_hidden_line(choice)}" for choice in found.choices)
        raise UsageError(tr("It contains several skills. Choose one:\n{choices}").format(choices=choices))
    return found.preview


def _show(preview: SkillPreview, options: SkillsOptions, terminal: Terminal) -> None:
    if options.json:
        terminal.line(msgspec.json.encode(preview).decode())
        return
    style = terminal.style
    terminal.line(f"{style.bold(escape_hidden_line(preview.name))}  {escape_hidden_line(preview.description)}")
    terminal.line(style.dim(source_text(preview)))
    for line in file_lines(preview):
        terminal.line(f"  {line}")
    for name, text in text_parts(preview):
        terminal.line(f"\n{style.bold(name)}")
        for line in text.splitlines():
            terminal.line(f"  {line}")


async def _install(connection: Connection, source: str, options: SkillsOptions, terminal: Terminal) -> None:
    preview = await _preview(connection, source, options)
    _show(preview, options, terminal)
    if preview.problem:
        raise UsageError(preview.problem)
    question = tr("Install {name}? Agents will be told of it; its scripts run only if you allow them.").format(
        name=preview.name
    )
    if not await _is_confirmed(question, options, terminal):
        terminal.note(tr("Nothing was installed."))
        return
    params = SkillInstallParams(
        source=preview.source, path=preview.path, ref=preview.ref, fingerprint=preview.fingerprint
    )
    made = (await connection.call(SKILL_INSTALL, params)).skill
    terminal.line(
        tr("Installed {name} in {parent}.").format(
            name=made.name, parent=escape_hidden_line(str(Path(made.file).parent))
        )
    )


async def _trust(connection: Connection, options: SkillsOptions, terminal: Terminal, *, trusted: bool) -> None:
    """Decide about the skills of the folder, as they were displayed."""
    workspace = workspace_path(options.workspace)
    listing = await connection.call(SKILL_LIST, SkillListParams(workspace=workspace))
    skills = [skill for skill in listing.skills if skill.origin == "workspace"]
    if not skills:
        raise UsageError(tr("This folder brings no skills."))
    for skill in skills:
        await _show_of_folder(connection, skill, options, terminal)
    question = trn(
        "Tell agents of this skill, until it changes?",
        "Tell agents of these {n} skills, until one changes?",
        len(skills),
    )
    if trusted and not await _is_confirmed(question, options, terminal):
        terminal.note(tr("Nothing was changed."))
        return
    params = SkillTrustParams(workspace=workspace, fingerprint=listing.fingerprint, trusted=trusted)
    await connection.call(SKILL_TRUST, params)
    terminal.line(
        tr("Agents are told of this from the next task on.")
        if trusted
        else tr("Agents are not told of this from the next task on.")
    )


async def _show_of_folder(connection: Connection, skill: Skill, options: SkillsOptions, terminal: Terminal) -> None:
    """Display all of a skill, or what agents are told of one that cannot be displayed."""
    try:
        preview = await _preview(connection, str(Path(skill.file).parent), options)
    except CallError as error:
        terminal.line(f"{escape_hidden_line(skill.name)}  {escape_hidden_line(skill.description)}")
        terminal.line(f"  {escape_hidden_line(skill.file)}: {escape_hidden_line(str(error))}")
        return
    _show(preview, options, terminal)


async def _remove(connection: Connection, skill: Skill, options: SkillsOptions, terminal: Terminal) -> None:
    changed = tr(" Files in it were changed since it was installed.") if skill.is_changed else ""
    folder = escape_hidden_line(str(Path(skill.file).parent))
    if not await _is_confirmed(
        tr("Remove {folder}?{changed}").format(folder=folder, changed=changed), options, terminal
    ):
        terminal.note(tr("Nothing was removed."))
        return
    await connection.call(SKILL_REMOVE, SkillRemoveParams(file=skill.file))
    name = escape_hidden_line(skill.name)
    terminal.line(tr("Removed {name}. It can be restored for 30 days: errand skills restore {name}").format(name=name))


async def _restore(connection: Connection, name: str, terminal: Terminal) -> None:
    """`name` is that of a skill, or its SKILL.md."""
    folder = (await connection.call(SKILL_LIST, SkillListParams())).folder
    file = name if "/" in name else str(Path(folder) / name / "SKILL.md")
    made = (await connection.call(SKILL_RESTORE, SkillRestoreParams(file=file))).skill
    terminal.line(
        tr("Restored {name} in {parent}.").format(
            name=escape_hidden_line(made.name), parent=escape_hidden_line(str(Path(made.file).parent))
        )
    )


async def _is_confirmed(question: str, options: SkillsOptions, terminal: Terminal) -> bool:
    if options.yes:
        return True
    if not terminal.interactive:
        raise UsageError(tr("{question} Confirm with --yes.").format(question=question))
    terminal.line(question)
    return (await terminal.ask("[y/N] ")).strip().lower() in ("y", "yes")
