"""Makes the links of a permission case: symbolic and hard ones, also in the place of the workspace or the home."""

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

_HARD = ("hardlink", "hard_link", "hard", "link")
_CONTENT = "a file of the case\n"


class CaseLink(msgspec.Struct, frozen=True):
    """A link of `context.fs`, or with the types `file` and `dir` a file or folder; `content` is that of a file."""

    path: str
    target: str = ""
    type: str = "symlink"
    content: str = _CONTENT


def make_links(links: Iterable[CaseLink], folder: Path) -> None:
    """Make the links in their order. Nothing outside `folder` is made or linked by a hard link.

    What a link takes the place of, as the workspace, is a folder where the link leads.
    """
    for link in links:
        path = Path(link.path)
        assert path.is_relative_to(folder), f"{path} is outside the folders of the case"
        path.parent.mkdir(parents=True, exist_ok=True)
        is_folder = path.is_dir()
        _clear(path)
        if link.type in _HARD:
            os.link(_hard_target(link, folder), path)
        elif link.type in ("file", "dir", "directory", "folder"):
            path.write_text(link.content) if link.type == "file" else path.mkdir()
        else:
            if is_folder and (target := path.parent / link.target).is_relative_to(folder):
                target.mkdir(parents=True, exist_ok=True)
            path.symlink_to(link.target)


def _clear(path: Path) -> None:
    """Take away what stands in the place of a link: a folder that was made for the case, or an earlier link."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        path.rmdir()


def _hard_target(link: CaseLink, folder: Path) -> Path:
    """The file to link; what is outside the case has a file of the same name in its place."""
    target = Path(os.path.normpath(Path(link.path).parent / link.target))
    if not target.is_relative_to(folder):
        target = folder / "outside" / target.name
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        target.write_text(link.content)
    return target
