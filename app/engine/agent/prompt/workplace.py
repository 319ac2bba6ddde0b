"""The part of a system prompt that says where the agent is: folder, system, day, branch, and what lies at the top."""

import os
import platform
from itertools import islice
from pathlib import Path
from string import Template

from app.engine.agent.prompt.ground import folders
from app.engine.agent.prompt.occasion import Occasion
from app.engine.agent.prompting import text
from app.engine.tools.walk import is_folder
from app.protocol.prompts import PromptPart
from app.regular_file import read_beginning

_MOST_SHOWN = 40
_MOST_LOOKED_AT = 2_000
_LONGEST_NAME = 80


def workplace(occasion: Occasion) -> PromptPart:
    facts = Template(text("workspace")).safe_substitute(
        workspace=_plain(str(occasion.workspace)),
        system=f"{platform.system()} {platform.machine()}",
        date=occasion.now.strftime("%A, %d %B %Y"),
    )
    lines = (facts, _branch(occasion), _top(occasion))
    return PromptPart(name="workspace", text="\n".join(line for line in lines if line))


def _top(occasion: Occasion) -> str:
    """Of the home directory nothing: what somebody keeps there is no part of the work."""
    if occasion.workspace == occasion.home:
        return ""
    try:
        with os.scandir(occasion.workspace) as entries:
            looked_at = islice(entries, _MOST_LOOKED_AT)
            found = sorted(f"{_plain(one.name)}{os.sep if is_folder(one) else ''}" for one in looked_at)
    except OSError:
        return ""
    if not found:
        return "- It is empty."
    more = "" if len(found) <= _MOST_SHOWN else f" and {_count(len(found) - _MOST_SHOWN)} more"
    return f"- At its top: {', '.join(f'`{name}`' for name in found[:_MOST_SHOWN])}{more}."


def _count(number: int) -> str:
    return str(number) if number + _MOST_SHOWN < _MOST_LOOKED_AT else "many"


def _branch(occasion: Occasion) -> str:
    """As git has it written down; no process is started for it."""
    root = folders(occasion.workspace, occasion.home)[0]
    try:
        head = read_beginning(_git_folder(root / ".git") / "HEAD", 500).decode("utf-8", "replace").strip()
    except OSError:
        return ""
    reference, _, name = head.partition("refs/heads/")
    return f"- Git branch: `{_plain(name)}`." if reference == "ref: " and name else "- Git: no branch is checked out."


def _git_folder(place: Path) -> Path:
    """A work tree has a file there that names it."""
    if place.is_dir():
        return place
    return place.parent / os.fsdecode(read_beginning(place, 4_000)).removeprefix("gitdir:").strip()


def _plain(name: str) -> str:
    """A name in one line and one pair of backticks, whatever was made of it."""
    shown = "".join(letter if letter.isprintable() and letter != "`" else "?" for letter in name)
    return shown if len(shown) <= _LONGEST_NAME or os.sep in shown else f"{shown[:_LONGEST_NAME]}…"
