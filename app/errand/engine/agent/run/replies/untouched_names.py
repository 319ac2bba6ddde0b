"""Finds files and commands that the last words of a task name, and that none of its calls did (decision 83)."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from unicodedata import normalize

from errand.engine.agent.loop.events import AgentEvent, MessageEnd
from errand.engine.agent.loop.features import Feature
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import FolderNotAnswering
from errand.engine.core.messages import (
    AssistantMessage,
    ContextText,
    Image,
    Message,
    Text,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from errand.engine.core.workspace_threads import in_workspace
from errand.engine.models.base import ModelRequest
from errand.engine.tools.files.file_walk import TooLong, walk
from errand.engine.tools.registry import CONTROL_NAMES
from errand.engine.tools.shell.tool import Shell
from errand.protocol.base import JsonValue

MAX_UNTOUCHED_NAMES = 3
# A task with more names, or with a longer argument or result, is not judged.
_MAX_NAMES = 50_000
_MAX_CHARACTERS = 200_000
_MAX_PATTERNS = 100
_MAX_CLAIM_CHARACTERS = 20_000
_MAX_PATH_LENGTH = 200
_CHECK_S = 2.0
_MAX_WALKED_ENTRIES = 5_000
# The sandbox has one of its own, which cannot be looked into.
_TEMPORARY = "/tmp/"

_PICTURE_ENDINGS = "png jpg jpeg gif webp bmp svg"
# Endings that are a file's in a sentence as well; a name with another one may be code ("list.sort") or a site.
_OTHER_ENDINGS = (
    "txt md rst csv tsv json jsonl yaml yml toml ini cfg conf xml html htm css scss log sql db sqlite py ipynb js mjs "
    "ts tsx jsx sh bash ps1 bat rs go java kt c h cpp hpp cs rb php pl lua swift r tex pdf doc docx xls xlsx ppt pptx "
    "odt ods zip tar gz tgz lock patch diff"
)
_LIBRARY_NAMES = "alpine.js chart.js d3.js ember.js express.js next.js node.js nuxt.js p5.js react.js three.js vue.js"
_PROGRAM_NAMES = (
    "pytest python python3 node npm npx yarn pnpm pip uv make cmake cargo go git docker ruff mypy pyright tox mvn "
    "gradle dotnet ruby bundle rake php composer java javac gcc bash sh curl wget"
)
_PICTURES = frozenset(_PICTURE_ENDINGS.split())
_ENDINGS = _PICTURES | frozenset(_OTHER_ENDINGS.split())
_LIBRARIES = frozenset(_LIBRARY_NAMES.split())
_PROGRAMS = frozenset(_PROGRAM_NAMES.split())
_SHELLS = frozenset({"bash", "sh"})
# Each part begins where a word does, so that a long word is read once.
_ADDRESS = re.compile(
    r"(?<!\w)\w+://\S+|(?<!\S)\S+?@\S+|\b(?:www\.|localhost[:/])\S+|\b[\w.-]{1,200}\.(?:com|org|net|io|dev)/\S+"
)
# Not before a parenthesis: that is a function of a module.
_FILE = re.compile(r"(?<![\w.@-])/?(?:[\w.~-]{1,255}/){0,40}([\w-][\w.-]{0,200}\.([A-Za-z][A-Za-z0-9]{0,7}))(?![\w/(])")
# Such as "i.e", "d.h" and "D.C".
_ABBREVIATION = re.compile(r"(?:\w\.)+\w")
# The same without its folders, and with any ending: for texts that are long.
_NAME = re.compile(r"(?<![\w.-])[\w-][\w.-]{0,200}\.[A-Za-z][A-Za-z0-9]{0,7}(?!\w)")
_PATTERN = re.compile(r"[\w.*?\[\]-]{0,100}[*?][\w.*?\[\]-]{0,100}")
_PROGRAM = re.compile(r"(?<![\w.-])[a-z][\w+-]{0,40}")
_CODE = re.compile(r"(?<!`)`([^`\n]{1,100})`(?!`)")


def first_message(history: Sequence[Message], stored_prompts: int) -> int:
    """Return where a new task begins in the messages before its first turn: at the prompt, if that is among them."""
    if stored_prompts:
        return len(history)
    return max((at for at, message in enumerate(history) if _is_from_person(message)), default=0)


class CallNames(Feature):
    """Collects what the calls and results of one task name, and what people wrote in it.

    `history` are the messages before the first turn of this engine; from `begins_at` on they are of this task.
    """

    def __init__(self, history: Sequence[Message], begins_at: int) -> None:
        self._touched: set[str] = set()
        self._earlier = {name for message in history[:begins_at] for name in _all_names(message)}
        self._programs: set[str] = set()
        self._patterns: list[str] = []
        self._requested: set[str] = set()
        self._requested_programs: set[str] = set()
        self._is_complete = True
        self._system_prompt = ""
        for message in history[begins_at:]:
            self._read(message)

    async def on_event(self, event: AgentEvent) -> None:
        match event:
            case MessageEnd(message=message):
                self._read(message)
            case _:
                pass

    async def before_request(self, request: ModelRequest, cancel: CancelSignal) -> ModelRequest:
        """Read the names in the instructions: the model knows those files without a call."""
        if request.system_prompt != self._system_prompt:
            self._system_prompt = request.system_prompt
            self._earlier |= set(_names(request.system_prompt))
        return request

    async def untouched(self, claim: str, workspace: Path, since: datetime, *, is_declared: bool) -> tuple[str, ...]:
        """Return the names in a claim that no call backs, at most `MAX_UNTOUCHED_NAMES`.

        A reply may name files as advice, so that it is judged by the files and commands that people named in the task.
        A declaration says what was done: it is judged by each file that it names. Files that changed on disk since the
        task began count as touched: a command may have made them without naming them.
        """
        if not self._is_complete or len(claim) > _MAX_CLAIM_CHARACTERS:
            return ()
        paths = [
            path
            for path, name in _files(claim)
            if not self._is_touched(name) and (name in self._requested or (is_declared and name not in self._earlier))
        ]
        commands = [
            command
            for command, program in _commands(claim)
            if program in self._requested_programs and program not in self._programs
        ]
        unchanged = await _unchanged_since(paths, workspace, since) if paths else ()
        return tuple(dict.fromkeys((*unchanged, *commands)))[:MAX_UNTOUCHED_NAMES]

    def _read(self, message: Message) -> None:
        match message:
            case AssistantMessage():
                for call in message.tool_calls:
                    self._read_call(call)
            case ToolResultMessage(tool_name=name) if name in CONTROL_NAMES:
                pass
            case ToolResultMessage(content=content):
                self._read_touched(" ".join(block.text for block in content if isinstance(block, Text)))
            case UserMessage(content=content, kind=None):
                text = " ".join(block.text for block in content if not isinstance(block, ContextText | Image))
                names = set(_names(text))
                self._earlier |= {name for block in content for name in _names(_memory_text(block))}
                if any(isinstance(block, Image) for block in content):  # the model has seen it without a call
                    self._touched |= {name for name in names if name.rpartition(".")[2] in _PICTURES}
                self._requested |= names
                self._requested_programs |= _PROGRAMS.intersection(_PROGRAM.findall(text))
            case _:
                pass

    def _read_call(self, call: ToolCall) -> None:
        if call.name in CONTROL_NAMES:  # the claim itself, for instance
            return
        self._programs |= _SHELLS if call.name == Shell.name else _PROGRAMS & {call.name}
        for text in (*_strings(call.arguments), call.invalid or ""):
            if self._read_touched(text):
                self._programs |= _PROGRAMS.intersection(_PROGRAM.findall(text))
                self._patterns += _PATTERN.findall(text)[: _MAX_PATTERNS - len(self._patterns)]

    def _read_touched(self, text: str) -> bool:
        """Return False for a text that is too long, after which the task is not judged."""
        self._is_complete &= len(text) <= _MAX_CHARACTERS and len(self._touched) <= _MAX_NAMES
        if self._is_complete:
            self._touched |= set(_names(text))
        return self._is_complete

    def _is_touched(self, name: str) -> bool:
        return name in self._touched or any(fnmatchcase(name, pattern.lower()) for pattern in self._patterns)


def _is_from_person(message: Message) -> bool:
    return isinstance(message, UserMessage) and message.kind is None


def _files(text: str) -> Iterator[tuple[str, str]]:
    """Yield the files that a text names: the path as it stands there, and the name for comparisons."""
    for match in _FILE.finditer(_ADDRESS.sub(" ", normalize("NFC", text))):
        name, ending = match[1], match[2]
        is_library = ending == "js" and (name[:1].isupper() or name in _LIBRARIES)
        is_file = ending.lower() in _ENDINGS and not is_library and not _ABBREVIATION.fullmatch(name)
        if is_file and len(match[0]) <= _MAX_PATH_LENGTH:
            yield match[0], name.lower()


def _names(text: str) -> Iterator[str]:
    return (match[0].lower() for match in _NAME.finditer(normalize("NFC", text)))  # macOS lists names in another form


def _memory_text(block: object) -> str:
    """Return what memory has for a message. That a folder has a file touches none."""
    return block.text if isinstance(block, ContextText) and block.part == "memory" else ""


def _all_names(message: Message) -> Iterator[str]:
    for block in message.content:
        if isinstance(block, Text):
            yield from _names(_memory_text(block) if isinstance(block, ContextText) else block.text)
    if isinstance(message, AssistantMessage):
        for call in message.tool_calls:
            for text in _strings(call.arguments):
                yield from _names(text)


def _commands(text: str) -> Iterator[tuple[str, str]]:
    """Yield the commands in code spans, each with its program."""
    for match in _CODE.finditer(text):
        program = match[1].split(maxsplit=1)[0] if match[1].strip() else ""
        if program in _PROGRAMS:
            yield match[1], program


def _strings(value: JsonValue) -> Iterable[str]:
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from _strings(item)
        case dict():
            for item in value.values():
                yield from _strings(item)
        case _:
            return


async def _unchanged_since(paths: Sequence[str], workspace: Path, since: datetime) -> Sequence[str]:
    def look() -> Sequence[str]:
        seen = (path for path in paths if not path.startswith(_TEMPORARY))
        unchanged = [path for path in seen if not _has_changed(_in(workspace, path), since)]
        return _not_below(workspace, unchanged, since) if unchanged else ()

    try:
        return await in_workspace(workspace, look, _CHECK_S)
    except FolderNotAnswering:
        return ()


def _in(workspace: Path, path: str) -> Path:
    try:
        return workspace / Path(path).expanduser()
    except RuntimeError:  # there is no such user
        return workspace / path


def _not_below(workspace: Path, paths: Sequence[str], since: datetime) -> Sequence[str]:
    """Return the paths that no changed file in a folder below has at its end: commands run in folders, too."""
    left = list(paths)
    with suppress(TooLong):
        for inner, _ in islice(walk(workspace, lambda: False), _MAX_WALKED_ENTRIES):
            inner_path = f"/{Path(inner).as_posix()}"
            ends = [path for path in left if inner_path.endswith(f"/{path.removeprefix('./')}")]
            if ends and _has_changed(workspace / inner, since):
                left = [path for path in left if path not in ends]
    return left


def _has_changed(file: Path, since: datetime) -> bool:
    """Return whether a file was written, moved or unpacked since then; the latter two keep the time of its content."""
    try:
        status = file.lstat()
    except (OSError, ValueError):
        return False
    return max(status.st_mtime, status.st_ctime) >= since.timestamp() - 1
