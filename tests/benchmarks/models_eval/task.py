"""A task of the evaluation, and what its judge looks at: the folder and the record, never the opinion of a model."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from errand.protocol.base import JsonObject
from errand.protocol.blocks import TextBlock, ToolCallBlock, ToolResultBlock
from errand.protocol.conversations import Node
from errand.protocol.tasks.groups import TodoItem

_CHECK_LIMIT_S = 60.0


class RunEnd(msgspec.Struct, frozen=True, rename="camel"):
    """The part of the last line of `errand run --json` that is judged and counted."""

    exit_code: int = 1
    turns: int = 0
    stop_reason: str | None = None
    completion: str | None = None
    summary: str = ""
    error: str | None = None
    conversation_id: str = ""
    todo: tuple[TodoItem, ...] = ()
    last_call_failed: bool = False
    untouched: tuple[str, ...] = ()
    changed_nothing: bool = False

    @property
    def marks(self) -> tuple[str, ...]:
        """The remarks that speak against a success, in a word or two each, as a person is told them."""
        marks = (
            ("last call failed", self.last_call_failed),
            ("names untouched", bool(self.untouched)),
            ("changed nothing", self.changed_nothing),
        )
        return tuple(mark for mark, is_set in marks if is_set)

    @property
    def has_tick(self) -> bool:
        """True if a person is told that the work is done."""
        return self.exit_code == 0 and self.completion in ("declared", "replied") and not self.marks


@dataclass(frozen=True, slots=True)
class Run:
    """One `errand run` of a task: the finished nodes of its conversation, in order, and its end."""

    nodes: tuple[Node, ...]
    end: RunEnd

    @property
    def calls(self) -> Iterator[ToolCallBlock]:
        return (block for node in self.nodes for block in node.blocks if isinstance(block, ToolCallBlock))

    @property
    def results(self) -> Iterator[ToolResultBlock]:
        return (block for node in self.nodes for block in node.blocks if isinstance(block, ToolResultBlock))

    @property
    def replies(self) -> list[str]:
        """The texts of the agent's replies."""
        nodes = (node for node in self.nodes if node.role == "assistant")
        return [block.text for node in nodes for block in node.blocks if isinstance(block, TextBlock)]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The state after a task: its folder, and the runs of its messages.

    `after_first` are the files of the folder after the first message.
    """

    folder: Path
    runs: tuple[Run, ...]
    after_first: Mapping[str, str]

    @property
    def answer(self) -> str:
        """The text that the person reads last: the summary, or the last reply."""
        return self.runs[-1].end.summary if self.runs else ""

    @property
    def files(self) -> dict[str, str]:
        return read_files(self.folder)

    def says(self, text: str) -> bool:
        """Return True if the answer has this text, not as a part of a longer word or number."""
        pattern = rf"(?<![\w.]){re.escape(text)}(?!\w)"
        return re.search(pattern, self.answer, re.IGNORECASE) is not None

    def called(self, *tools: str) -> bool:
        return any(call.tool in tools for run in self.runs for call in run.calls)

    def prints(self, *command: str) -> str | None:
        """Return what a Python program of the folder prints; None if it fails."""
        # Without the cached bytecode: that of a file changed within the second may be taken for current.
        with tempfile.TemporaryDirectory() as cache:
            environment = os.environ | {"PYTHONPYCACHEPREFIX": cache}
            try:
                checked = subprocess.run(
                    [sys.executable, *command],
                    cwd=self.folder,
                    env=environment,
                    capture_output=True,
                    text=True,
                    timeout=_CHECK_LIMIT_S,
                )
            except subprocess.TimeoutExpired:
                return None
        return checked.stdout if checked.returncode == 0 else None


@dataclass(frozen=True, slots=True)
class Step:
    """A call of the scripted model. `tool` is the registered name of the tool."""

    tool: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class EvalTask:
    """A task. `messages` are sent one after the other, each when the agent has ended; `files` are in its folder before.

    `solution` has the calls of the scripted model for each message, followed by an answer in words, or by
    `task_complete`. `wrong` are shell commands that leave a wrong outcome, which the judge must not take for a right
    one. `facts` are pinned in memory. `iterates`: it is one of the few with which one works.
    """

    name: str
    messages: tuple[str, ...]
    judge: Callable[[Outcome], bool]
    solution: tuple[tuple[Step, ...], ...]
    answer: str
    files: Mapping[str, str]
    wrong: str = ""
    wrong_answer: str = "I have done it."
    facts: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    iterates: bool = False


def shell(command: str) -> Step:
    """Return the call that runs a command."""
    return Step("shell", {"command": command})


def shells(*commands: str) -> tuple[Step, ...]:
    """Return the calls that run these commands, one after the other."""
    return tuple(map(shell, commands))


def read_files(folder: Path) -> dict[str, str]:
    """Return the text of each file below the folder, without what Python caches."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(folder)): path.read_text("utf-8", "replace") for path in paths}


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write the files; one that begins with #! can be run."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        if text.startswith("#!"):
            path.chmod(0o755)
