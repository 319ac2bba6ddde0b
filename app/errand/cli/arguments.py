"""The options that several commands share, and the reading of prompts, files, folders, keys and times.

Raises `UsageError` for invalid values.
"""

import os
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

from errand.cli.exit_codes import EXIT_USAGE, CommandError
from errand.cli.options import Action, Argument, CommandOptions, Flag, Option
from errand.protocol.agents import ThinkingLevel
from errand.protocol.tasks.groups import ApproveMode, NetworkMode, TaskMode
from errand.protocol.tasks.methods import TaskStartParams
from errand.text.translation import marked, tr

_MAX_PROMPT_LENGTH = 1_000_000  # a message to the engine has at most 1 MiB

_SPAN = re.compile(r"(\d{1,6})\s*([mhd])")
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
_PERIOD = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?")
_DAYS_AGO = {"today": 0, "yesterday": 1}

APPROVE_HELP = marked(
    "what happens where approval is needed: ask, edits (allow file changes here), auto (and commands in the "
    "sandbox), plan (read only), never, all"
)
FOLLOW_JSON_HELP = marked("print events as JSON lines, then a line with the result")
ID_HELP = marked("the task: a unique part of its id, or of the id or title of its conversation")
CONVERSATION_HELP = marked("the conversation: a unique part of its id or title")


class UsageError(CommandError):
    """Invalid input; the text says what to type instead."""

    def __init__(self, text: str) -> None:
        super().__init__(text, EXIT_USAGE)


def wrong_arguments(command: str, actions: Sequence[Action], arguments: Sequence[str]) -> UsageError:
    """Return the error for arguments that do not fit their action: it says how the action is used."""
    fitting = [action for action in actions if arguments and arguments[0] in action.names] or actions
    lines = [f"  errand {command} {action.usage}" for action in fitting]
    return UsageError("\n".join([tr("Usage:"), *lines]))


class TaskIdOptions(CommandOptions, frozen=True, kw_only=True):
    task_id: Annotated[str, Argument("ID", ID_HELP)]


class FollowOptions(CommandOptions, frozen=True, kw_only=True):
    """The options of a command that follows a task."""

    no_thinking: Annotated[bool, Flag("--no-thinking", "hide thinking, which is shown dimmed")] = False


class TargetOptions(CommandOptions, frozen=True, kw_only=True):
    """Options that name the conversation of a task and the agent that answers."""

    conversation: Annotated[
        str | None, Option("--conversation", "continue this conversation: a unique part of its id or title", "ID")
    ] = None
    is_continued: Annotated[
        bool, Flag("--continue", "continue the most recent conversation in this folder, or in --workspace")
    ] = False
    agent: Annotated[str | None, Option("--agent", "the agent that answers", "NAME")] = None
    personality: Annotated[
        str | None, Option("--personality", "personality of the agent (errand personalities lists them)", "NAME")
    ] = None
    model: Annotated[str | None, Option("--model", "model, such as openai/gpt-4.1 (errand models lists them)", "M")] = (
        None
    )


class TaskOptions(CommandOptions, frozen=True, kw_only=True):
    """Options that say how a task works."""

    api_base: Annotated[str | None, Option("--api-base", "base URL for openai_compatible/NAME models", "URL")] = None
    api_key_env: Annotated[
        str | None, Option("--api-key-env", "environment variable with the key for this run", "NAME")
    ] = None
    workspace: Annotated[str | None, Option("--workspace", "folder to work in (default: the current one)", "DIR")] = (
        None
    )
    approve: Annotated[
        ApproveMode | None,
        Option("--approve", APPROVE_HELP),
    ] = None
    network: Annotated[
        NetworkMode | None,
        Option(
            "--network",
            (
                "which commands of this conversation may use the network: those that you allowed (asked), "
                "all (on), none (off)"
            ),
        ),
    ] = None
    mode: Annotated[
        TaskMode,
        Option(
            "--mode",
            (
                "when it ends: when the agent says so (task), after each reply (chat), or decided by the "
                "first reply (auto)"
            ),
        ),
    ] = "auto"
    thinking: Annotated[ThinkingLevel | None, Option("--thinking", "thinking level, for models that support it")] = None
    max_turns: Annotated[int | None, Option("--max-turns", "turn limit; the task asks before it continues", "N")] = None
    budget: Annotated[
        float | None, Option("--budget", "budget in US dollars; the task asks before it spends more", "USD")
    ] = None
    max_minutes: Annotated[
        float | None, Option("--max-minutes", "time limit in minutes; the task asks before it continues", "N")
    ] = None
    max_tokens: Annotated[
        int | None, Option("--max-tokens", "token limit, input and output; the task asks before it continues", "N")
    ] = None


def start_params(prompt: str, target: TargetOptions, task: TaskOptions, *, attended: bool) -> TaskStartParams:
    """Return the start parameters of a task; raises `UsageError`. `run.resolve_target` finds the conversation."""
    if target.conversation and target.is_continued:
        raise UsageError(tr("Use either --conversation or --continue, not both."))
    goes_on = bool(target.conversation) or target.is_continued
    return TaskStartParams(
        prompt=prompt,
        conversation_id=target.conversation,
        model=target.model,
        api_base=task.api_base,
        api_key=read_api_key(task.api_key_env),
        workspace=None if goes_on and not task.workspace else workspace_path(task.workspace),
        mode=task.mode,
        approve="never" if task.approve in (None, "ask") and not attended else task.approve,
        network=task.network,
        attended=attended,
        thinking_level=task.thinking,
        max_turns=task.max_turns,
        budget_usd=task.budget,
        max_minutes=task.max_minutes,
        max_tokens=task.max_tokens,
    )


def read_prompt(argument: str) -> str:
    """Return the prompt, from standard input for `-`; raises `UsageError` if it is empty or too long."""
    text = sys.stdin.buffer.read(_MAX_PROMPT_LENGTH + 1) if argument == "-" else argument.encode()
    if not text.strip():
        raise UsageError(
            tr("The prompt is empty. Say what to do, for example: errand run 'list the largest files here'")
        )
    if len(text) > _MAX_PROMPT_LENGTH:
        raise UsageError(
            tr(
                "The prompt is longer than {limit:,} bytes. Put the text into a file in the "
                "workspace and name that file in the prompt."
            ).format(limit=_MAX_PROMPT_LENGTH)
        )
    return text.decode("utf-8", "replace")


def read_api_key(variable: str | None) -> str | None:
    """Return the value of the variable; raises `UsageError` if it is not set."""
    if variable is None:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        raise UsageError(tr("The environment variable {variable} is not set.").format(variable=variable))
    return key


def attachment_path(file: str) -> str:
    """Return the absolute path of an existing file; raises `UsageError`."""
    path = Path(os.path.expanduser(file))
    if not path.is_file():
        raise UsageError(
            tr(
                "There is no file {file!r} to attach. Check its name. To work with a folder, name it in the prompt."
            ).format(file=file)
        )
    return path_text(path.absolute())


def path_text(path: Path) -> str:
    """Return the path as text. Raises `UsageError` if it is not UTF-8, which the engine requires."""
    try:
        path.as_posix().encode()
    except UnicodeEncodeError as error:
        name = os.fsencode(path).decode("utf-8", "replace")
        raise UsageError(
            tr("The name {shown!r} is not UTF-8, which Errand does not support. Rename it first.").format(shown=name)
        ) from error
    return str(path)


def absolute_path(path: str) -> str:
    """Return an absolute path, since the engine does not know the working directory."""
    return path_text(Path(os.path.expanduser(path)).absolute())


def workspace_path(folder: str | None) -> str:
    path = Path(os.path.expanduser(folder or "."))
    try:
        real = Path(os.path.realpath(path))  # fails if the working directory was removed
    except OSError:
        real = path
    if not real.is_absolute() or not real.is_dir():
        raise UsageError(
            tr("There is no folder {path!r}. Create it, or use another with --workspace.").format(path=str(path))
        )
    return path_text(real)


def time_span(text: str) -> timedelta | None:
    """Return the length of `30m`, `8h` or `7d`; None for anything else."""
    match = _SPAN.fullmatch(text.strip())
    return int(match[1]) * _UNITS[match[2]] if match is not None else None


def past_moment(text: str) -> datetime:
    """Return the moment of an age (`8h`, `30d`), or the start of a day, month or year in the local time zone.

    Raises `UsageError` for anything else.
    """
    now, word = datetime.now(UTC), text.strip().lower()
    try:
        if (span := time_span(word)) is not None:
            return now - span
        if word in _DAYS_AGO:
            day = now.astimezone() - timedelta(days=_DAYS_AGO[word])
            return datetime(day.year, day.month, day.day).astimezone()
        if (match := _PERIOD.fullmatch(word)) is not None:
            year, month, day_of_month = (int(part or 1) for part in match.groups())
            return datetime(year, month, day_of_month).astimezone()
        return datetime.fromisoformat(word).astimezone()
    except (ValueError, OverflowError) as error:
        raise UsageError(
            tr(
                "{text!r} is not a time. Use an age such as 8h or 30d, or a day, month or year such as 2026-11-02."
            ).format(text=text[:40])
        ) from error
