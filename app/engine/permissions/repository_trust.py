"""Whether git can read a repository without running anything that the repository names.

Its configuration may have only keys that are known to be data: no pager, no filter, no monitor, no include.
"""

import os
import re
from pathlib import Path

_LARGEST, _LARGEST_INDEX = 65_536, 20_000_000
_GITLINK = b"\x00\x00\xe0\x00"
_SECTION = re.compile(r'\[\s*([A-Za-z0-9-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]\s*(.*)')
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?")
_DATA = {
    "core": "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol "
    "safecrlf sharedrepository abbrev quotepath compression whitespace untrackedcache longpaths hidedotfiles "
    "preloadindex protecthfs protectntfs hookspath",
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
    "gc": "auto autodetach pruneexpire",
    "maintenance": "auto strategy",
    "commit": "gpgsign",
    "tag": "gpgsign",
}


def names_no_program(folder: str) -> bool:
    """True if git, reading in this folder, runs nothing of the repository's; also if there is no repository."""
    place = Path(os.path.realpath(folder))
    for above in (place, *place.parents):
        git = above / ".git"
        if os.path.lexists(git):
            return _is_plain(git, above)
        if (above / "HEAD").is_file() and (above / "objects").is_dir():
            return False  # a bare repository
    return True


def _is_plain(git: Path, root: Path) -> bool:
    try:
        if git.is_symlink() or not git.is_dir() or os.path.lexists(git / "commondir"):
            return False
        if any(os.path.lexists(git / name) for name in ("modules", "config.worktree")):
            return False  # submodules have configurations of their own
        config = git / "config"
        if not config.is_file() or config.is_symlink() or config.stat().st_size > _LARGEST:
            return False
        if _has_nested_repositories(git / "index"):
            return False
        hooks = _hooks_folder(config.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    # The one hook that reading runs, when it refreshes the index.
    return hooks is not None and not os.path.lexists(root / (hooks or ".git/hooks") / "post-index-change")


def _has_nested_repositories(index: Path) -> bool:
    """True if the index lists a repository in the repository (mode 160000): git looks into it, by its configuration."""
    if not index.exists():
        return False
    if index.stat().st_size > _LARGEST_INDEX:
        return True
    return _GITLINK in index.read_bytes()


def _hooks_folder(text: str) -> str | None:
    """The value of core.hooksPath, empty without one; None if the configuration has more than data."""
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
    return hooks
