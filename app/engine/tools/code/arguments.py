"""The arguments of the tool `code`, and what models send instead of them."""

import json
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from app.protocol.base import JsonObject, JsonValue

_MOST_EDITS = 200
# Field names of similar tools that models use by mistake.
_OTHER_NAMES = {
    "file_path": "path",
    "filename": "path",
    "old_string": "old",
    "old_text": "old",
    "new_string": "new",
    "new_text": "new",
    "text": "content",
    "query": "pattern",
}


class Edit(Struct, frozen=True):
    old: Annotated[str, Meta(description="The text to replace, as in patch; earlier edits are already applied.")]
    new: Annotated[str, Meta(description="The replacement text.")]
    replace_all: Annotated[bool, Meta(description="Replace every occurrence.")] = False


class CodeArguments(Struct, frozen=True):
    action: Annotated[
        Literal["read", "write", "patch", "edit", "list", "create_dir", "search"],
        Meta(
            description="read: lines of a file. write: create or replace a whole file. patch: replace a piece of a "
            "file. edit: replace several pieces of one file, all or none. list: files of a folder. create_dir: create "
            "a folder and its parents. search: matching lines."
        ),
    ]
    path: Annotated[str, Meta(description="File or folder, relative to the workspace. Default: the workspace.")] = "."
    content: Annotated[str, Meta(description="write: the complete new text.")] | UnsetType = UNSET
    old: Annotated[
        str,
        Meta(
            description="patch: the text to replace, which must occur once. Copy it exactly; whole lines are also "
            "found if only their white space differs, and then `new` is indented as the file is."
        ),
    ] = ""
    new: Annotated[str, Meta(description="patch: the replacement text.")] | UnsetType = UNSET
    replace_all: Annotated[bool, Meta(description="patch: replace every occurrence.")] = False
    edits: Annotated[
        tuple[Edit, ...],
        Meta(max_length=_MOST_EDITS, description="edit: the pieces to replace, in order. If one fails, none is."),
    ] = ()
    start_line: Annotated[int, Meta(ge=1, description="read: first line, from 1.")] = 1
    end_line: Annotated[int, Meta(ge=0, description="read: last line; 0 for the end of the file.")] = 0
    pattern: Annotated[str, Meta(description="search: regular expression.")] = ""
    literal: Annotated[bool, Meta(description="search: treat the pattern as plain text.")] = False
    glob: Annotated[
        str, Meta(max_length=1_000, description="list, search: only these files, such as *.py or src/**/*.ts.")
    ] = ""
    ignored: Annotated[bool, Meta(description="list, search: include files ignored by .gitignore.")] = False


def repaired(arguments: JsonObject) -> JsonObject:
    """The arguments with the names of fields that this tool has."""
    prepared = _renamed({key: value for key, value in arguments.items() if value is not None})
    if prepared.get("action") == "list" and "glob" not in prepared and "pattern" in prepared:
        prepared["glob"] = prepared.pop("pattern")
    edits = prepared.get("edits")
    if isinstance(edits, str):
        edits = _from_text(edits)
    if isinstance(edits, list):
        prepared["edits"] = [_renamed(edit) if isinstance(edit, dict) else edit for edit in edits]
    return prepared


def _renamed(fields: JsonObject) -> JsonObject:
    renamed = dict(fields)
    for other, ours in _OTHER_NAMES.items():
        if other in renamed and ours not in renamed:
            renamed[ours] = renamed.pop(other)
    return renamed


def _from_text(edits: str) -> JsonValue:
    """A list that a model sent as text."""
    try:
        return json.loads(edits)
    except (ValueError, RecursionError):
        return edits
