"""The part of a system prompt that names skills: folders with a SKILL.md, which the agent reads when it needs it."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from string import Template

from app.engine.agent.prompt.front_matter import front_matter
from app.engine.agent.prompt.ground import folders, read_inside
from app.engine.agent.prompt.occasion import Occasion
from app.engine.agent.prompting import text
from app.engine.tools.plain_text import tidy_name
from app.paths import OWN_SKILLS
from app.protocol.prompts import PromptPart

NAME = "SKILL.md"
_PLACES = (".errand/skills", ".agents/skills")
_MOST = 64
_MOST_READ = 500
_MOST_LOOKED_AT = 5_000
_HEAD_BYTES = 16_384
_LONGEST_NAME = 64
_LONGEST_DESCRIPTION = 500


@dataclass(frozen=True, slots=True)
class Skill:
    name: str
    description: str
    file: Path


def skills(occasion: Occasion) -> PromptPart | None:
    """Of two with one name the nearer one: the workspace's, then those above it, then the person's own."""
    found: dict[str, Skill] = {}
    broken: list[Path] = []
    files = [(file, within) for folder, within in _folders(occasion) for file in _files(folder)]
    looked_at = 0
    while looked_at < min(len(files), _MOST_READ) and len(found) < _MOST:
        file, within = files[looked_at]
        looked_at += 1
        skill = _read(file, within)
        if skill is None:
            broken.append(file)
        else:
            found.setdefault(skill.name, skill)
    remarks = [*_left_out(broken), *_not_looked_at(files[looked_at:])]
    if not files:
        return None
    lines = "\n".join(f"- {skill.name}: {skill.description} (`{skill.file}`)" for skill in found.values())
    return PromptPart(
        name="skills",
        text=Template(text("skills")).safe_substitute(skills=lines) if found else "",
        sources=tuple(str(skill.file) for skill in found.values()),
        remarks=tuple(remarks),
    )


def _left_out(broken: list[Path]) -> list[str]:
    if not broken:
        return []
    others = f" and {len(broken) - 1} more" if len(broken) > 1 else ""
    verb = "are" if others else "is"
    what = f"{tidy_name(str(broken[0]))}{others}"
    return [f"{what} {verb} left out: a skill begins with a front matter that has a name and a description."]


def _not_looked_at(files: list[tuple[Path, Path]]) -> list[str]:
    if not files:
        return []
    first = tidy_name(str(files[0][0]))
    return [f"Only {_MOST} skills are named to the agent: {first} and what comes after it is left out."]


def _folders(occasion: Occasion) -> Iterator[tuple[Path, Path]]:
    """Each with the folder that nothing in it may lead out of."""
    ground = folders(occasion.workspace, occasion.home)
    for folder in reversed(ground):
        yield from ((folder / place, ground[0]) for place in _PLACES)
    yield from ((occasion.home / place, occasion.home / place) for place in OWN_SKILLS)


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(one / NAME for one in islice(folder.iterdir(), _MOST_LOOKED_AT) if _is_file(one / NAME))
    except OSError:
        return []


def _is_file(file: Path) -> bool:
    try:
        return file.is_file()
    except OSError:  # in a folder that cannot be read
        return False


def _read(file: Path, within: Path) -> Skill | None:
    fields = front_matter((read_inside(file, within, _HEAD_BYTES) or b"").decode("utf-8", "replace"))
    name, description = fields.get("name"), fields.get("description")
    # The agent is told the path: no name of a folder may write lines of its own into the prompt.
    if not name or not description or len(name) > _LONGEST_NAME or not str(file).isprintable():
        return None
    if len(description) > _LONGEST_DESCRIPTION:
        description = f"{description[:_LONGEST_DESCRIPTION]}…"
    return Skill(name, description, file)
