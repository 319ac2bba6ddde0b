"""Whether git, npm and cargo can read a project without running anything that the project names.

The configuration of a repository may have only keys that are known to be data: no pager, no filter, no monitor, no
include. The same holds for the repository of a linked worktree, and for submodules, which git looks into.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from errand.system.regular_file import real_path

_MAX_CONFIGURATION_BYTES, _MAX_INDEX_BYTES = 65_536, 20_000_000
_GITLINK = b"\x00\x00\xe0\x00"
# In an entry of the index: from the mode to the flags, and to the name of the file.
_TO_FLAGS, _TO_NAME, _EXTENDED = 36, 38, 0x4000
_MAX_SUBMODULES, _MAX_DEPTH = 50, 3
_LINK = re.compile(r"gitdir: ([^\n]+)\n?")
_SECTION = re.compile(r'\[\s*([A-Za-z0-9-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]\s*(.*)')
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?")
_DATA = {
    "core": "repositoryformatversion filemode worktree bare logallrefupdates ignorecase precomposeunicode symlinks "
    "autocrlf eol safecrlf sharedrepository abbrev quotepath compression whitespace untrackedcache longpaths "
    "hidedotfiles preloadindex protecthfs protectntfs hookspath",
    "remote": "url pushurl fetch push tagopt prune mirror promisor partialclonefilter gh-resolved",
    "branch": "remote merge rebase pushremote description vscode-merge-base gh-merge-base github-pr-owner-number",
    "user": "name email signingkey useconfigonly",
    "pull": "rebase ff",
    "push": "default autosetupremote followtags",
    "init": "defaultbranch",
    "fetch": "prune prunetags parallel",
    "merge": "conflictstyle ff",
    "rebase": "autosquash autostash updaterefs",
    "diff": "algorithm renames colormoved mnemonicprefix noprefix context",
    "status": "short branch showuntrackedfiles",
    "log": "date decorate abbrevcommit",
    "color": "ui branch diff status",
    "extensions": "objectformat partialclone preciousobjects refstorage relativeworktrees",
    "lfs": "repositoryformatversion",
    "submodule": "url active branch ignore path shallow fetchrecursesubmodules",
    "gc": "auto autodetach pruneexpire",
    "maintenance": "auto strategy",
    "commit": "gpgsign",
    "tag": "gpgsign",
}


# Files by which a project directs a program: what it runs, and where it gets code.
_DIRECTING = {
    "npm": (".npmrc",),
    "cargo": (".cargo/config", ".cargo/config.toml", "rust-toolchain", "rust-toolchain.toml"),
}
_DIRECTING["rustc"] = _DIRECTING["rustup"] = _DIRECTING["cargo"]


def directs_no_program(program: str, folder: str, home: str) -> bool:
    """Return True if no file of the folder or one above directs npm or cargo; those in the home directory are the
    user's.
    """
    names = _DIRECTING.get(program, ())
    start = Path(real_path(folder))
    return bool(names) and not any(
        os.path.lexists(above / name)
        for above in (start, *start.parents)
        if above != Path(real_path(home))
        for name in names
    )


def names_no_program(folder: str) -> bool:
    """Return True if git, reading in this folder, runs nothing of the repository's; also if there is no repository."""
    start = Path(real_path(folder))
    try:
        for above in (start, *start.parents):
            git = above / ".git"
            if os.path.lexists(git):
                return _is_plain(_git_folder(git), above) or _is_in_superproject(above)
            if (above / "HEAD").is_file() and (above / "objects").is_dir():
                return False  # a bare repository
    except (OSError, ValueError):
        return False
    return True


@dataclass(frozen=True, slots=True)
class _GitFolder:
    """The folder of git for a working tree, and the one that all working trees of the repository share."""

    own: Path
    common: Path


def _git_folder(git: Path) -> _GitFolder | None:
    """Return the folder of a repository, or of a linked worktree; None if it is neither."""
    if git.is_symlink():
        return None
    if git.is_dir():
        return None if os.path.lexists(git / "commondir") else _GitFolder(git, git)
    match = _LINK.fullmatch(_short_text(git))
    if match is None or not os.path.isabs(match[1]):
        return None
    own = Path(real_path(match[1]))
    common = own.parent.parent
    # Only the repository itself can say that this is its worktree.
    is_linked = own.parent.name == "worktrees" and _short_text(own / "gitdir").strip() == str(git)
    return _GitFolder(own, common) if is_linked and _short_text(own / "commondir").strip() == "../.." else None


def _is_plain(git: _GitFolder | None, root: Path, depth: int = 0) -> bool:
    """Return True if configuration and hooks name no program, here and in the submodules."""
    if git is None or any(os.path.lexists(git_folder / "config.worktree") for git_folder in (git.own, git.common)):
        return False
    config = git.common / "config"
    if not config.is_file() or config.is_symlink():
        return False
    hooks = _hooks_folder(_short_text(config), root if depth else None, git.own)
    # The one hook that reading runs, when it refreshes the index.
    default = str(git.common / "hooks")
    if hooks is None or os.path.lexists(root / (hooks or default) / "post-index-change"):
        return False
    submodules = _submodules(git.own / "index")
    if submodules is None or len(submodules) > _MAX_SUBMODULES or (submodules and depth == _MAX_DEPTH):
        return False
    return all(_is_plain_submodule(git.common, root / name, depth + 1) for name in submodules)


def _is_in_superproject(root: Path) -> bool:
    """Return True for the folder of a submodule whose repository is kept in a repository above."""
    return any(
        (above / ".git" / "modules").is_dir() and _is_plain_submodule(above / ".git", root, 1) for above in root.parents
    )


def _is_plain_submodule(parent: Path, root: Path, depth: int) -> bool:
    """`parent` is the folder of the repository that has the submodule, in which git keeps that of the submodule."""
    git = root / ".git"
    if not os.path.lexists(git):
        return not root.is_symlink()  # not fetched: git does not look into it
    if git.is_symlink() or root.is_symlink() or git.is_dir():
        return False
    match = _LINK.fullmatch(_short_text(git))
    if match is None:
        return False
    own = Path(real_path(root / match[1]))
    if not own.is_relative_to(real_path(parent / "modules")) or os.path.lexists(own / "commondir"):
        return False
    return _is_plain(_GitFolder(own, own), root, depth)


def _submodules(index: Path) -> list[str] | None:
    """Return the paths of the repositories in the repository (mode 160000); None if the index is not of a known
    form.
    """
    if not index.exists():
        return []
    if index.stat().st_size > _MAX_INDEX_BYTES:
        return None
    data = index.read_bytes()
    names: list[str] = []
    at = data.find(_GITLINK)
    if at >= 0 and int.from_bytes(data[4:8]) not in (2, 3):
        return None  # later versions shorten the names
    while at >= 0:
        flags = int.from_bytes(data[at + _TO_FLAGS : at + _TO_NAME])
        start = at + _TO_NAME + (2 if flags & _EXTENDED else 0)
        names.append(os.fsdecode(data[start : data.find(b"\0", start)]))
        at = data.find(_GITLINK, at + 1)
    return names


def _short_text(file: Path) -> str:
    if file.stat().st_size > _MAX_CONFIGURATION_BYTES:
        raise ValueError(f"{file} is too large")
    return file.read_text(encoding="utf-8")


def _hooks_folder(text: str, submodule: Path | None, own: Path) -> str | None:
    """Return the value of core.hooksPath, empty without one; None if the configuration has more than data.

    Only that of a submodule may say where its files are, which git writes there.
    """
    section, hooks = "", ""
    for line in text.splitlines():
        rest = line.strip()
        if header := _SECTION.fullmatch(rest):
            section, rest = header[1].lower(), header[3].strip()
        if not rest or rest[0] in "#;":
            continue
        key = _KEY.fullmatch(rest)
        if key is None or rest.endswith("\\") or key[1].lower() not in _DATA.get(section, "").split():
            return None
        if key[1].lower() == "hookspath":
            hooks = (key[2] or "").strip('" ')
            if hooks.startswith(("~", "%")):
                return None
        if key[1].lower() == "worktree" and (
            submodule is None or real_path(own / (key[2] or "")) != real_path(submodule)
        ):
            return None
    return hooks
