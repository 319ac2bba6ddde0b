"""Patches of changed files, as `git apply` and `patch` read them."""

import re
from collections.abc import Iterable

from errand.protocol.changes import FileDiff

_NO_FILE = "/dev/null"
_HEADER = re.compile(r"@@ -(\d+(?:,\d+)?) \+(\d+(?:,\d+)?) @@")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def patch_of(files: Iterable[FileDiff]) -> str:
    """One patch of several files. Files without lines to compare, such as binary ones, are left out."""
    return "".join(
        file_patch(_name(file), "".join(f"{hunk.header}\n{hunk.text}" for hunk in file.hunks))
        for file in files
        if file.hunks
    )


def patch_of_diff(diff: str) -> str:
    """Return the patch of a diff with the names of its file; empty if it is none."""
    names, _, hunks = diff.partition("\n+++ ")
    name, _, hunks = hunks.partition("\n")
    return file_patch(name, hunks) if names == f"--- {name}" and hunks.startswith("@@ ") else ""


def file_patch(name: str, hunks: str) -> str:
    """Return the patch of one file; `name` is relative to where it is applied."""
    header = _HEADER.match(hunks)
    is_new = header is not None and header.group(1) == "0,0"
    is_deleted = header is not None and header.group(2) == "0,0"
    old, new = _quoted(f"a/{name.lstrip('/')}"), _quoted(f"b/{name.lstrip('/')}")
    mode = "new file mode 100644\n" if is_new else "deleted file mode 100644\n" if is_deleted else ""
    # A tab ends a name with blanks, which `patch` would cut.
    end = "\t" if " " in name else ""
    before, after = _NO_FILE if is_new else f"{old}{end}", _NO_FILE if is_deleted else f"{new}{end}"
    return f"diff --git {old} {new}\n{mode}--- {before}\n+++ {after}\n{hunks}"


def _name(file: FileDiff) -> str:
    """Return the name as it is on disk: `file.name` is made safe to show."""
    return "/".join(file.path.split("/")[-file.name.count("/") - 1 :])


def _quoted(name: str) -> str:
    """Return the name, in quotes if git would not read it otherwise."""
    if name.isprintable() and not {'"', "\\"}.intersection(name):
        return name
    quoted = "".join(_ESCAPES.get(letter, letter if letter.isprintable() else _octal(letter)) for letter in name)
    return f'"{quoted}"'


def _octal(letter: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in letter.encode(errors="surrogateescape"))
