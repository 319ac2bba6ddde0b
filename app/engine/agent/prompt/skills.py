"""The system prompt's list of skills: folders with a SKILL.md and its front matter.

The front matter is parsed without a YAML library, which a hostile repository could exploit.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from string import Template

from app.engine.agent.prompt.texts import prompt_text
from app.engine.agent.prompt.workspace import PromptContext, read_inside, workspace_folders
from app.engine.tools.plain_text import clean_name
from app.paths import USER_SKILLS
from app.protocol.context import PromptPart
from app.protocol.notices import PromptRemark

_FIELD = re.compile(r"([A-Za-z_][\w-]*+)[ \t]*+:(?:[ \t]++(.*+))?")
_BLOCK = re.compile(r"[>|][-+0-9]{0,2}(?:[ \t]+#.*)?")
_QUOTED = re.compile(r"""(?:"((?:[^"\\]|\\.)*)"|'((?:[^']|'')*)')[ \t]*(?:#.*)?""", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
# YAML lists, maps, anchors, references and tags: never valid in a name or description.
_NOT_PLAIN = tuple("[]{}&*!%@`,")

NAME = "SKILL.md"
_SKILL_FOLDERS = (".errand/skills", ".agents/skills")
_MOST = 64
_MOST_READ = 500
_MOST_SCANNED = 5_000
_HEAD_BYTES = 16_384
_LONGEST_NAME = 64
_LONGEST_DESCRIPTION = 500


def front_matter(text: str) -> dict[str, str]:
    """The top-level fields, each joined to one line, without non-text values. Empty without front matter."""
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != "---":
        return {}
    fields: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines[1:]:
        if line.startswith("---"):
            break
        if line[:1] in ("", " ", "\t"):
            current.append(line)
        elif (found := _FIELD.fullmatch(line)) is not None:
            current = fields.setdefault(found[1], [])
            current[:] = [found[2] or ""]
        else:
            current = []
    return {name: said for name, parts in fields.items() if (said := _value(parts))}


def _value(lines: list[str]) -> str:
    first = lines[0].strip()
    if _BLOCK.fullmatch(first):
        return _in_one_line(" ".join(lines[1:]))
    whole = " ".join(line.strip() for line in lines).strip()
    if (quoted := _QUOTED.fullmatch(whole)) is not None:
        double, single = quoted.groups()
        return _in_one_line(_ESCAPED.sub(_unescape, double) if double is not None else single.replace("''", "'"))
    if whole.startswith(('"', "'", *_NOT_PLAIN)):
        return ""
    return _in_one_line(" ".join(re.sub(r"(?:^|[ \t])#.*", "", line) for line in lines))


def _unescape(escape: "re.Match[str]") -> str:
    return {"n": "\n", "t": "\t"}.get(escape[1], escape[1])


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


@dataclass(frozen=True, slots=True)
class Skill:
    name: str
    description: str
    file: Path


def skills_part(context: PromptContext) -> PromptPart | None:
    """If two skills share a name, the nearest wins: the workspace, then its parent folders, then the user's own."""
    found: dict[str, Skill] = {}
    broken: list[Path] = []
    files = [(file, within) for folder, within in _folders(context) for file in _files(folder)]
    looked_at = 0
    while looked_at < min(len(files), _MOST_READ) and len(found) < _MOST:
        file, within = files[looked_at]
        looked_at += 1
        skill = _read(file, within)
        if skill is None:
            broken.append(file)
        else:
            found.setdefault(skill.name, skill)
    remarks = [*_broken_remarks(broken), *_unread_remarks(files[looked_at:])]
    if not files:
        return None
    lines = "\n".join(f"- {skill.name}: {skill.description} (`{skill.file}`)" for skill in found.values())
    return PromptPart(
        name="skills",
        text=Template(prompt_text("skills")).safe_substitute(skills=lines) if found else "",
        sources=tuple(str(skill.file) for skill in found.values()),
        remarks=tuple(remarks),
    )


def _broken_remarks(broken: list[Path]) -> list[PromptRemark]:
    if not broken:
        return []
    return [PromptRemark(code="no_front_matter", path=clean_name(str(broken[0])), count=len(broken) - 1)]


def _unread_remarks(files: list[tuple[Path, Path]]) -> list[PromptRemark]:
    if not files:
        return []
    return [PromptRemark(code="too_many_skills", path=clean_name(str(files[0][0])), most=_MOST)]


def _folders(context: PromptContext) -> Iterator[tuple[Path, Path]]:
    """Pairs of a skills folder and the root folder that its links must not leave."""
    workspace_roots = workspace_folders(context.workspace, context.home)
    for folder in reversed(workspace_roots):
        yield from ((folder / place, workspace_roots[0]) for place in _SKILL_FOLDERS)
    yield from ((context.home / place, context.home / place) for place in USER_SKILLS)


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(one / NAME for one in islice(folder.iterdir(), _MOST_SCANNED) if _is_file(one / NAME))
    except OSError:
        return []


def _is_file(file: Path) -> bool:
    try:
        return file.is_file()
    except OSError:  # inside an unreadable folder
        return False


def _read(file: Path, within: Path) -> Skill | None:
    fields = front_matter((read_inside(file, within, _HEAD_BYTES) or b"").decode("utf-8", "replace"))
    name, description = fields.get("name"), fields.get("description")
    # The path goes into the prompt: a folder name must not inject lines into it.
    if not name or not description or len(name) > _LONGEST_NAME or not str(file).isprintable():
        return None
    if len(description) > _LONGEST_DESCRIPTION:
        description = f"{description[:_LONGEST_DESCRIPTION]}…"
    return Skill(name, description, file)
