"""Judges the paths that a call of a file tool reads and writes."""

from collections.abc import Iterable

from errand.engine.permissions.files.folder_layout import FolderLayout
from errand.engine.permissions.files.paths import OPEN_FILES, judge_path
from errand.engine.permissions.grants import is_below
from errand.engine.permissions.verdict import Finding, ask, deny, strictest
from errand.engine.tools.base import Access
from errand.protocol.asks import GrantedCall, Risk
from errand.text.visible_text import argument_text, escape_hidden

_RISKS: tuple[Risk, ...] = ("low", "medium", "high")


def judge_files(access: Access, layout: FolderLayout) -> Finding:
    """Judges paths as the tool will use them; a write is asked about each time."""
    if not access.reads and not access.writes:
        return ask("tool", "not known to be harmless")
    findings = [judge_path("write", str(path), layout.workspace, layout, False) for path in access.writes]
    findings += [_of_read(str(path), layout) for path in access.reads]
    if access.operation == "read" and access.named_path in OPEN_FILES and len(findings) == 1:
        return Finding("allow", "path", f"{access.named_path} only says what kind of system this is")
    if access.named_path:  # the name may mean more than the file to which it leads
        named = judge_path("write" if access.writes else "read", access.named_path, layout.workspace, layout, False)
        findings += [named] if named.verdict == "deny" or named.risk == "high" else []
    names = [_below_workspace(name, layout) for name in (access.named_path, *map(str, access.writes))]
    if access.writes and (name := next(filter(_is_hidden_in_part, names), None)):
        findings.append(ask("path", f"its name has characters that cannot be seen: {argument_text(name)}", "high"))
    decisive = strictest(sorted(findings, key=lambda finding: _RISKS.index(finding.risk), reverse=True))
    assert decisive is not None
    if access.writes and access.is_partial and decisive.verdict == "ask" and decisive.risk == "low":
        return ask("path", "changes a file of the workspace, and the change cannot be shown in full")
    if decisive.verdict == "allow" and access.tier != "read":
        return ask("tool", "not known to be harmless")
    return decisive


def is_edit(access: Access, finding: Finding) -> bool:
    """Return True for a change of ordinary files in the workspace that a person can see in full.

    A change that cannot be shown is left to a person: nobody could review it afterwards either.
    """
    is_ordinary = (finding.verdict, finding.rule, finding.risk) == ("ask", "path", "low")
    return is_ordinary and bool(access.writes) and not access.is_partial


def exact_call(access: Access, finding: Finding) -> GrantedCall | None:
    """Return the call as a grant; None if it depends on a file's state: the next change is a different one."""
    paths = (*access.writes, *access.reads)
    if finding.risk == "high" or not access.operation or len(paths) != 1 or access.basis:
        return None
    return GrantedCall(operation=access.operation, path=str(paths[0]))


def denied_folder(access: Access, denied: Iterable[GrantedCall]) -> str | None:
    """Return a folder of a deny rule that the call reads or writes; searching above one reads it."""
    for call in denied:
        if call.folder is None:
            continue
        paths = access.writes if call.operation == "write" else (*access.writes, *access.reads)
        names = (access.named_path,) if access.named_path in OPEN_FILES and call.operation != "write" else ()
        if any(is_below(str(path), call.folder) for path in (*paths, *names)):
            return call.folder
        is_searched = call.operation != "write" and access.operation == "search"
        if is_searched and any(is_below(call.folder, str(path)) for path in access.reads):
            return call.folder
    return None


def _below_workspace(name: str, layout: FolderLayout) -> str:
    """Return the part that a call chooses: the folder of the workspace is the person's choice."""
    root = next((root for root in layout.roots if layout.is_inside(name, root)), "")
    return name[len(root) :].removeprefix("/")


def _is_hidden_in_part(name: str) -> bool:
    """Return True for control, bidirectional and other characters that a person does not see in a list of files."""
    is_text = not any("\ud800" <= letter <= "\udfff" for letter in name)
    return is_text and ("\n" in name or "\t" in name or escape_hidden(name) != name)


def _of_read(path: str, layout: FolderLayout) -> Finding:
    if any(layout.is_inside(path, skills) for skills in layout.skills) and not layout.closed_folder_of(path):
        return Finding("allow", "path", "reading a skill of yours")
    finding = judge_path("read", path, layout.workspace, layout, False)
    if finding.verdict == "ask" and any("\ud800" <= letter <= "\udfff" for letter in path):
        return deny("path", "its name is not UTF-8, so that nobody can be asked about it")
    return finding
