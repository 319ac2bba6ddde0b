"""The arguments of the tool `code`, and what models send instead of them."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from errand.engine.core.json_input.lenient_json import read_container
from errand.engine.tools.arguments import renamed
from errand.protocol.base import JsonObject, JsonValue

_MAX_EDITS = 200
# Field names of similar tools that models use by mistake.
_OTHER_NAMES = {
    "file_path": "path",
    "filename": "path",
    "file": "path",
    "filepath": "path",
    "directory": "path",
    "dir_path": "path",
    "folder": "path",
    "old_string": "old",
    "old_text": "old",
    "new_string": "new",
    "new_text": "new",
    "text": "content",
    "contents": "content",
    "query": "pattern",
    "regex": "pattern",
    "include": "glob",
}


class Edit(Struct, frozen=True):
    old: Annotated[str, Meta(description="As in patch, after the earlier edits.")]
    new: str
    replace_all: bool = False


class CodeArguments(Struct, frozen=True):
    action: Annotated[
        Literal["read", "write", "patch", "edit", "list", "create_dir", "search"],
        Meta(
            description="read: lines of a file. write: create or replace a file. patch: replace a piece of one. edit: "
            "replace several pieces of one, all or none. list: files of a folder. create_dir: a folder and its "
            "parents. search: matching lines."
        ),
    ]
    path: Annotated[str, Meta(description="Relative to the workspace, which is the default.")] = "."
    content: Annotated[str, Meta(description="write: the whole new text.")] | UnsetType = UNSET
    old: Annotated[
        str,
        Meta(
            description="patch: the text to replace; it must occur once. Copy it exactly; whole lines are also found "
            "if only their white space differs, and `new` is then indented like them."
        ),
    ] = ""
    new: Annotated[str, Meta(description="patch: the replacement text.")] | UnsetType = UNSET
    replace_all: Annotated[bool, Meta(description="patch: every occurrence.")] = False
    edits: Annotated[
        tuple[Edit, ...],
        Meta(max_length=_MAX_EDITS, description="edit: in order; if one fails, none is made."),
    ] = ()
    start_line: Annotated[int, Meta(ge=1, description="read: first line, from 1.")] = 1
    end_line: Annotated[int, Meta(ge=0, description="read: last line; 0 for the end.")] = 0
    pattern: Annotated[str, Meta(description="search: regular expression.")] = ""
    literal: Annotated[bool, Meta(description="search: the pattern is plain text.")] = False
    glob: Annotated[str, Meta(max_length=1_000, description="list, search: only such files: *.py, src/**/*.ts.")] = ""
    ignored: Annotated[bool, Meta(description="list, search: also what .gitignore names.")] = False


def repaired(arguments: JsonObject) -> JsonObject:
    """Return the arguments with the names of fields that this tool has."""
    prepared = renamed({key: value for key, value in arguments.items() if value is not None}, _OTHER_NAMES)
    if "action" not in prepared and ("edits" in prepared or {"old", "new"} <= prepared.keys()):
        prepared["action"] = "edit" if "edits" in prepared else "patch"
    if prepared.get("action") == "list" and "glob" not in prepared and "pattern" in prepared:
        prepared["glob"] = prepared.pop("pattern")
    edits = prepared.get("edits")
    if isinstance(edits, str):
        edits = read_container(edits)
    if isinstance(edits, list):
        prepared["edits"] = [_prepared_edit(edit) for edit in edits]
    return prepared


def _prepared_edit(edit: JsonValue) -> JsonValue:
    fields = read_container(edit) if isinstance(edit, str) else edit
    return renamed(fields, _OTHER_NAMES) if isinstance(fields, dict) else edit
