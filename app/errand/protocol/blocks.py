"""Content blocks: the ordered content of a node."""

from typing import Literal, TypeAlias

from errand.protocol.base import JsonObject, Timestamp, Wire
from errand.protocol.notices import NoticeData

# `nudge`: go on or complete the task; `cut`: the last reply was cut; `as_chat`: a person made the task a chat;
# `resume`: continue after an interruption; `no_answer`: the last reply was no answer; `no_work`: no tool has run.
EngineMessageKind = Literal["nudge", "no_work", "cut", "no_answer", "as_chat", "resume", "as_plan", "plan_over"]


class TextBlock(Wire, frozen=True, kw_only=True, omit_defaults=True, tag="text"):
    """Text in Markdown. `engine_message` is set in a message that the engine wrote to the agent during a task.

    `task_from` is the name of the agent that gave this text to its sub-agent as the task; empty in all other messages.
    `forgotten`: a person had the text removed for good; `text` says so.
    """

    text: str
    engine_message: EngineMessageKind | None = None
    task_from: str = ""
    forgotten: bool = False


class ThinkingBlock(Wire, frozen=True, kw_only=True, tag="thinking"):
    """The model's reasoning. `signature` comes from the provider and is sent back to it unchanged."""

    text: str
    signature: str = ""


class ImageBlock(Wire, frozen=True, kw_only=True, tag="image"):
    """A picture: either `path` is the engine's copy of an attached file called `name`, or `data` is base64."""

    media_type: str
    data: str = ""
    path: str = ""
    name: str = ""


class FileBlock(Wire, frozen=True, kw_only=True, tag="file"):
    """A file that a person attached. The model receives its `path`, not its content.

    `size` is in bytes, 0 if unknown.
    """

    path: str
    name: str
    size: int


CallRole = Literal["call", "message", "question", "completion"]
# What a call does, in the words of the Agent Client Protocol.
ToolKind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other"]


class Location(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """A file or folder that a call works on. `line` counts from 1, null if the call is not about one line."""

    path: str
    line: int | None = None


class EditedLines(Wire, frozen=True, kw_only=True):
    """Lines that a call replaces, with up to three equal lines around them. `line` is the first of the old ones."""

    line: int
    old_text: str
    new_text: str


class FileEdit(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """The effect of a call on a text file, as data; a unified diff of the same stands beside it.

    `path` is absolute. `is_cut`: the change is too large, or not of a text, so that some or all of its `parts` are
    left out.
    """

    path: str
    is_new: bool = False
    parts: tuple[EditedLines, ...] = ()
    is_cut: bool = False


class CallDisplay(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """The display of a call, as its tool declares it. All texts come from the model: make them safe to display.

    `kind` is what it does. `locations` are the files that its arguments name, as they name them: a relative path starts
    at the workspace of the task. `running` and `done` are the verb while it runs and afterwards; a call that was
    refused keeps `running`. `target` is the command, path or pattern, cut if very long; a path may be shortened. `icon`
    is the name of one of Lucide's, which the window draws. `role` tells calls that talk to a person (a message, a
    question, the end of the task) from those that act. `content` names the argument that holds the text of a message or
    question, or the code of a call; `language` is set if that code is all there is to show, otherwise a client shows
    all arguments. `shows_output_end`: the cause of a failure stands in the last lines of the output.
    """

    kind: ToolKind
    running: str = "using a tool"
    done: str = "used a tool"
    target: str = ""
    target_is_path: bool = False
    icon: str = "wrench"
    role: CallRole = "call"
    content: str = ""
    language: str = ""
    shows_output_end: bool = False
    locations: tuple[Location, ...] = ()


class ToolCallBlock(Wire, frozen=True, kw_only=True, tag="toolCall", omit_defaults=True):
    """A call that the model requested. `invalid` holds the raw argument text if it was not a JSON object.

    The engine adds `display` to every call that it sends to a client, and does not store it.
    """

    call_id: str
    tool: str
    arguments: JsonObject
    invalid: str | None = None
    display: CallDisplay = CallDisplay(kind="other")


class ResultFacts(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """The part of a result that clients show beside its summary.

    `diff` is a unified diff of the changed file with `added` and `removed` lines, `edits` are the same change as data.
    `locations` are the files that it read or changed, with absolute paths. `output_file` holds an output that is
    too long, or no text. `last_lines` are the end of the output of a failed command, null in older results.
    """

    duration_ms: int | None = None
    diff: str = ""
    added: int | None = None
    removed: int | None = None
    output_file: str = ""
    last_lines: tuple[str, ...] | None = None
    locations: tuple[Location, ...] = ()
    edits: tuple[FileEdit, ...] = ()


# `skipped`: the call was not run, because a queued message came; `stopped`: the task was stopped before it ran or while
# it did; `repeated`: the text ends with a hint that the same call, or the same calls in turn, were made several times;
# `waited`: the call is one to wait, so that the same result again is no repetition; `forgotten`: a person had the
# text removed for good.
ResultMark = Literal["skipped", "stopped", "repeated", "waited", "forgotten"]


class ToolResultBlock(Wire, frozen=True, kw_only=True, omit_defaults=True, tag="toolResult"):
    """The result of a tool call: `text` for the model, `summary` in one short line for people.

    `details` depends on the tool (exit code, hits of a search) and does not repeat `text`. `execution_id` names the
    durable record: `execution/output` reads the full output, which may be longer than the text. The engine adds
    `facts` to every result that it sends to a client, and does not store them; null if the tool gave no details.
    """

    call_id: str
    tool: str
    text: str
    is_error: bool
    summary: str = ""
    details: JsonObject | None = None
    execution_id: str = ""
    images: tuple[ImageBlock, ...] = ()
    facts: ResultFacts | None = None
    marks: tuple[ResultMark, ...] = ()


NoticeKind = Literal["stopped", "limit", "error", "resumed", "interrupted", "model", "permission", "warning", "info"]


class NoticeBlock(Wire, frozen=True, kw_only=True, omit_defaults=True, tag="notice"):
    """A notice, for example about what a stop ended: `data`, from which clients write the sentence.

    `text` is the sentence itself: of another program, of an older version, or of a client that adds a notice.
    """

    kind: NoticeKind
    text: str = ""
    data: NoticeData | None = None


class SummaryBlock(Wire, frozen=True, kw_only=True, tag="summary"):
    """Replaces the branch from its beginning to `until_id` in the model's context. The newest of a branch applies.

    `nodes` is the number of nodes it replaces. `tokens_before` and `tokens_after` estimate their size and the
    summary's. `person_characters` limits the person's older messages, which stay word for word beside the summary; 0
    for a summary of an older version.
    """

    text: str
    until_id: str
    nodes: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    person_characters: int = 0


# Whose words an entry of memory has. `task` is a task given to a sub-agent, or the summary of a branch.
MemoryRole = Literal["user", "agent", "tool", "task"]


# Why an entry was recalled: its meaning is near the message, it has rare words of it, or it is the answer to an entry
# that was recalled, or the question before it.
RecallReason = Literal["meaning", "words", "answer", "question"]


class RecalledEntry(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """An entry of memory as an agent was given it: `text` is the beginning of what node `node_id` says.

    `speaker` is the name of a person, an agent or a tool. `folder` is the workspace of its conversation. `score`
    compares entries of one search; higher is better. `reason` is null in older conversations; `words` are some that the
    entry shares with the message, the rarest first.
    """

    conversation_id: str
    conversation_title: str
    node_id: str
    role: MemoryRole
    speaker: str
    at: Timestamp
    text: str
    score: float = 0.0
    folder: str = ""
    reason: RecallReason | None = None
    words: tuple[str, ...] = ()


class WithheldEntries(Wire, frozen=True, kw_only=True):
    """So many entries of conversations in another folder would have been recalled; the person was not asked yet."""

    folder: str
    count: int


class RecallBlock(Wire, frozen=True, kw_only=True, omit_defaults=True, tag="recall"):
    """The entries of memory for the message above it, best first. The agent reads them with that message.

    `withheld` are entries of other folders, about which the person may decide with `memory/share`; `folder` is the one
    of this conversation.
    """

    entries: tuple[RecalledEntry, ...]
    withheld: tuple[WithheldEntries, ...] = ()
    folder: str = ""


class EnvironmentBlock(Wire, frozen=True, kw_only=True, omit_defaults=True, tag="environment"):
    """The workspace of an agent, told with the message that starts a task. These are not the person's words.

    `text` is what the agent reads before the message: everything or, if `is_change`, what has changed since the block
    before it on the branch. The other fields are the whole state at that time. `git_branch` is null outside of a
    repository and empty if no branch is checked out. `entries` are names at the top of the folder, those of folders end
    with a separator; null if it is not listed. `entry_count` counts all of them. `date` is a day (2026-11-29).
    `brief` is what a small model reads in place of `text`; empty if there is nothing for it.
    `plan_mode` is whether the agent is to plan only, if `text` says that; null if it does not.
    """

    text: str
    brief: str = ""
    folder: str
    system: str
    date: str
    is_change: bool = False
    plan_mode: bool | None = None
    git_branch: str | None = None
    entries: tuple[str, ...] | None = None
    entry_count: int = 0


Block: TypeAlias = (
    TextBlock
    | ThinkingBlock
    | ImageBlock
    | FileBlock
    | ToolCallBlock
    | ToolResultBlock
    | NoticeBlock
    | SummaryBlock
    | RecallBlock
    | EnvironmentBlock
)
