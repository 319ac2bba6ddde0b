"""Reads command arguments: prompts, files, folders, keys and task options.

Raises `UsageError` for invalid values.
"""

import os
import sys
from pathlib import Path

import msgspec

from app.cli.options import Options
from app.protocol.agents import ThinkingLevel
from app.protocol.base import JsonObject
from app.protocol.tasks import ApproveMode, TaskMode, TaskStartParams
from app.regular_file import read_regular

_LONGEST_PROMPT = 1_000_000  # a message to the engine has at most 1 MiB

_LARGEST_SCHEMA = 1_000_000


class UsageError(Exception):
    """Invalid input; the text says what to type instead."""


def start_params(options: Options, prompt: str, someone: bool) -> TaskStartParams:
    """The options as start parameters of a task; raises `UsageError`."""
    approve: ApproveMode = "ask" if someone else "never"
    if options.approve != "ask":
        approve = msgspec.convert(options.approve, ApproveMode)
    return TaskStartParams(
        prompt=prompt,
        conversation_id=options.conversation,
        model=options.model,
        api_base=options.api_base,
        api_key=read_api_key(options.api_key_env),
        workspace=None if options.conversation and not options.workspace else _workspace(options.workspace),
        mode=msgspec.convert(options.mode, TaskMode),
        approve=approve,
        attended=someone,
        thinking_level=msgspec.convert(options.thinking, ThinkingLevel | None),
        max_turns=options.max_turns,
        budget_usd=options.budget,
        attachments=tuple(_attachment(file) for file in options.attach or ()),
        answer_schema=_schema(options.answer_schema),
    )


def read_prompt(argument: str) -> str:
    """The prompt, from standard input for `-`; raises `UsageError` if it is empty or too long."""
    text = sys.stdin.buffer.read(_LONGEST_PROMPT + 1) if argument == "-" else argument.encode()
    if not text.strip():
        raise UsageError("The prompt is empty. Say what to do, for example: errand run 'list the largest files here'")
    if len(text) > _LONGEST_PROMPT:
        raise UsageError(
            f"The prompt is longer than {_LONGEST_PROMPT:,} bytes, and not more are taken. "
            "Put the text into a file in the workspace and name that file in the prompt."
        )
    return text.decode("utf-8", "replace")


def read_api_key(variable: str | None) -> str | None:
    """The value of the variable; raises `UsageError` if it is not set."""
    if variable is None:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        raise UsageError(f"The environment variable {variable} is not set, so there is no key to use.")
    return key


def _schema(file: str | None) -> JsonObject | None:
    if file is None:
        return None
    try:
        return msgspec.json.decode(read_regular(Path(os.path.expanduser(file)), _LARGEST_SCHEMA), type=JsonObject)
    except OSError as error:
        raise UsageError(f"The schema {file!r} cannot be read ({error.strerror}).") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"The schema {file!r} is not a JSON object: {error}.") from error


def _attachment(file: str) -> str:
    path = Path(os.path.expanduser(file))
    if not path.is_file():
        raise UsageError(f"There is no file {file!r} to attach. Check its name; a folder is named in the prompt.")
    return read_text_file(path.absolute())


def read_text_file(path: Path) -> str:
    """The path as text. Raises `UsageError` if it is not UTF-8, which the engine requires."""
    try:
        path.as_posix().encode()
    except UnicodeEncodeError as error:
        shown = os.fsencode(path).decode("utf-8", "replace")
        raise UsageError(f"The name {shown!r} is not UTF-8, which Errand cannot work with. Rename it first.") from error
    return str(path)


def _workspace(folder: str | None) -> str:
    path = Path(os.path.expanduser(folder or "."))
    try:
        whole = Path(os.path.realpath(path))  # fails if the working directory was removed
    except OSError:
        whole = path
    if not whole.is_absolute() or not whole.is_dir():
        raise UsageError(
            f"There is no folder {str(path)!r} to work in. Make it first, or name another with --workspace."
        )
    return read_text_file(whole)
