"""`errand changes`, `undo`, `redo`: the files that a task changed."""

from typing import Annotated

from errand.cli.arguments import TaskIdOptions, UsageError
from errand.cli.command import Command
from errand.cli.exit_codes import EXIT_ERROR
from errand.cli.lookup import find_task
from errand.cli.options import Flag, Option
from errand.cli.output import CommandOutput
from errand.cli.terminal.style import Style
from errand.cli.terminal.text import one_line, plain, wrapped
from errand.client.connection import Connection
from errand.client.launch import connect
from errand.client.patch import patch_of
from errand.client.texts.changes import CHANGES_NOT_SEEN, REDO_PREVIEW, file_state_text
from errand.protocol.changes import (
    CHANGE_DIFF,
    CHANGE_LIST,
    CHANGE_REDO,
    CHANGE_UNDO,
    ChangedFile,
    ChangeDiffParams,
    ChangeDiffResult,
    ChangeListParams,
    ChangeUndoParams,
    ChangeUndoResult,
    FileDiff,
    TaskChanges,
)
from errand.system.paths import Paths
from errand.text.translation import marked, tr, trn

_STEP_HELP, _FILE_HELP = marked("only the changes of this step"), marked("only this file, as named in the list")


class ChangesOptions(TaskIdOptions, frozen=True, kw_only=True):
    diff: Annotated[bool, Flag("--diff", "print a unified diff")] = False
    step: Annotated[int | None, Option("--step", _STEP_HELP, "N")] = None
    file: Annotated[str | None, Option("--file", _FILE_HELP, "F")] = None


async def show_changes(options: ChangesOptions, paths: Paths, output: CommandOutput) -> int:
    async with await connect(paths, "errand changes") as connection:
        changes = await _changes(connection, options.task_id)
        if options.diff and changes is not None:
            path = _path(changes, options.file)
            params = ChangeDiffParams(task_id=changes.task_id, path=path, step=options.step)
            _show_diff(await connection.call(CHANGE_DIFF, params), output)
        elif changes is None:
            text = tr("This task has no recorded file changes. {CHANGES_NOT_SEEN}")
            output.result(None, text.format(CHANGES_NOT_SEEN=CHANGES_NOT_SEEN))
        else:
            output.result(changes, *format_changes(changes, options.step, output.style, output.width))
    return 0


CHANGES = Command(ChangesOptions, show_changes, json_help=marked("print everything as one JSON object"))


class UndoOptions(TaskIdOptions, frozen=True, kw_only=True):
    step: Annotated[int | None, Option("--step", _STEP_HELP, "N")] = None
    file: Annotated[str | None, Option("--file", _FILE_HELP, "F")] = None
    hunk: Annotated[int | None, Option("--hunk", "only this hunk of the file, counted in its diff", "N")] = None
    overwrite: Annotated[
        bool, Flag("--overwrite", "include files that were changed since; their current version is kept")
    ] = False


async def undo(options: UndoOptions, paths: Paths, output: CommandOutput) -> int:
    return await _change(options, paths, output, redo=False)


async def redo(options: UndoOptions, paths: Paths, output: CommandOutput) -> int:
    return await _change(options, paths, output, redo=True)


UNDO = Command(UndoOptions, undo, json_help=marked("print what was changed, and what was not, as one JSON object"))
REDO = Command(UndoOptions, redo, json_help=marked("print what was changed, and what was not, as one JSON object"))


def format_changes(changes: TaskChanges, step: int | None, style: Style, width: int) -> list[str]:
    """Return the sums, a line for each file, then one for each step; with `step` those of this step only."""
    files = [file for file in changes.files if step is None or step in (*file.steps, *file.undone_steps)]
    lines: list[str] = []
    for file in files:
        counts = "" if file.is_folder else f"{style.green(f'+{file.added}')} {style.red(f'−{file.removed}')}  "
        name = one_line(plain(file.name), max(20, width - 40))
        lines.append(f"  {style.join(f'{counts}{name}', style.dim(file_state_text(file)))}")
        if file.note:
            lines.append(style.amber(f"      {plain(file.note)}"))
    added, removed = sum(file.added for file in files), sum(file.removed for file in files)
    head = style.bold(style.join(trn("{n} file", "{n} files", len(files)), f"+{added} −{removed}"))
    steps = [
        style.dim(
            tr("  step {step}: {files}{undone}").format(
                step=changed.step,
                files=trn("{n} file", "{n} files", changed.files),
                undone="" if changed.can_undo else tr(", undone"),
            )
        )
        for changed in changes.steps
        if step in (None, changed.step)
    ]
    return [head, *lines, *steps, *map(style.dim, wrapped(CHANGES_NOT_SEEN, width).splitlines())]


async def _change(options: UndoOptions, paths: Paths, output: CommandOutput, *, redo: bool) -> int:
    name = "redo" if redo else "undo"
    async with await connect(paths, f"errand {name}") as connection:
        changes = await _changes(connection, options.task_id)
        if changes is None:
            raise UsageError(tr("This task changed no files."))
        path = _path(changes, options.file)
        params = ChangeUndoParams(
            task_id=changes.task_id,
            path=path,
            step=options.step,
            hunk=await _hunk(connection, changes, path, options.hunk, redo=redo),
            overwrite=options.overwrite,
        )
        result = await connection.call(CHANGE_REDO if redo else CHANGE_UNDO, params)
    return _report(result, name, output)


def _report(result: ChangeUndoResult, name: str, output: CommandOutput) -> int:
    output.json(result)
    for conflict in result.conflicts:
        output.note(f"errand: {plain(conflict.text)}")
    if result.conflicts and not result.changes:
        output.note(tr("errand: nothing was changed."))
    if result.conflicts and all(conflict.is_gone for conflict in result.conflicts):
        output.note(tr("errand: use --overwrite to restore the file; redo removes it again."))
    elif any(conflict.can_overwrite for conflict in result.conflicts):
        output.note(tr("errand: use --overwrite to do it anyway; redo restores the current version."))
    if result.changes:
        done = tr("Redone") if name == "redo" else tr("Undone")
        output.line(
            tr("{done} in {files}.").format(
                done=done, files=trn("{n} file", "{n} files", len({change.path for change in result.changes}))
            )
        )
    return EXIT_ERROR if result.conflicts else 0


async def _changes(connection: Connection, task_id: str) -> TaskChanges | None:
    task = await find_task(connection, task_id)
    tasks = (await connection.call(CHANGE_LIST, ChangeListParams(task_id=task.id))).tasks
    return tasks[0] if tasks else None


def _path(changes: TaskChanges, name: str | None) -> str | None:
    """Return the path of the file with this name; raises `UsageError`."""
    if name is None:
        return None
    files: list[ChangedFile] = [file for file in changes.files if name in (file.name, file.path)]
    files = files or [file for file in changes.files if file.path.endswith(f"/{name}")]
    if len(files) != 1:
        names = ", ".join(plain(file.name) for file in (files or changes.files)[:5])
        raise UsageError(
            (
                tr("More than one changed file is named {name!r}. Files: {names}.")
                if files
                else tr("No changed file is named {name!r}. Files: {names}.")
            ).format(name=name, names=names)
        )
    return files[0].path


async def _hunk(
    connection: Connection, changes: TaskChanges, path: str | None, number: int | None, *, redo: bool
) -> str | None:
    """Return the id of a hunk by its number; raises `UsageError`."""
    if number is None:
        return None
    if path is None:
        raise UsageError(tr("--hunk needs --file."))
    if redo:
        (file,) = (file for file in changes.files if file.path == path)
        ids = [hunk.change_id for hunk in file.undone_hunks]
    else:
        files = (await connection.call(CHANGE_DIFF, ChangeDiffParams(task_id=changes.task_id, path=path))).files
        ids = [hunk.id for file in files if not file.is_undone for hunk in file.hunks]
    if not 1 <= number <= len(ids):
        raise UsageError(trn("There is {n} hunk to choose from.", "There are {n} hunks to choose from.", len(ids)))
    return ids[number - 1]


def _show_diff(diff: ChangeDiffResult, output: CommandOutput) -> None:
    output.json(diff)
    if output.as_json:
        return
    for file in diff.files:
        _write_diff(file, output)
    if not diff.files:
        output.note(tr("errand: none of these changes are left"))
    if diff.left_out:
        text = tr("errand: {more_files} not shown; choose one with --file")
        output.note(text.format(more_files=trn("{n} more file", "{n} more files", diff.left_out)))


def _write_diff(file: FileDiff, output: CommandOutput) -> None:
    """Print a file's changes: into a pipe as a patch that git reads, on a screen with colors, safe to show."""
    if not output.interactive:
        output.terminal.write_raw(patch_of((file,)))
    else:
        hunks = "".join(f"{hunk.header}\n{hunk.text}" for hunk in file.hunks)
        for line in f"--- {file.name}\n+++ {file.name}\n{hunks}".removesuffix("\n").split("\n"):
            output.line(_colored(plain(line), output.style))
    note = file.note or (REDO_PREVIEW if file.is_undone else "")
    if note:
        output.note(f"errand: {plain(file.name)}: {plain(note)}")


def _colored(line: str, style: Style) -> str:
    if line.startswith(("---", "+++")):
        return style.bold(line)
    if line.startswith("@@"):
        return style.blue(line)
    return style.green(line) if line.startswith("+") else style.red(line) if line.startswith("-") else line
