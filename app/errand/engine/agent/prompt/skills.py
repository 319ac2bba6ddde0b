"""The system prompt's list of skills: folders with a SKILL.md and its front matter.

The front matter is parsed without a YAML library, which a hostile repository could exploit.
"""

import hashlib
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from string import Template

import msgspec

from errand.engine.agent.prompt.texts import prompt_text
from errand.engine.agent.prompt.workspace import PromptContext, read_inside, workspace_folders
from errand.engine.tools.plain_text import clean_name, visible_text
from errand.protocol.context import PromptPart
from errand.protocol.notices import PromptRemark
from errand.system.paths import USER_SKILLS

_FIELD = re.compile(r"([A-Za-z_][\w-]*+)[ \t]*+:(?:[ \t]++(.*+))?")
_BLOCK = re.compile(r"[>|][-+0-9]{0,2}(?:[ \t]+#.*)?")
_QUOTED = re.compile(r"""(?:"((?:[^"\\]|\\.)*)"|'((?:[^']|'')*)')[ \t]*(?:#.*)?""", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
# YAML lists, maps, anchors, references and tags: never valid in a name or description.
_NOT_PLAIN = tuple("[]{}&*!%@`,")

NAME = "SKILL.md"
_SKILL_FOLDERS = (".errand/skills", ".agents/skills")
_MAX_SKILLS = 64
_MAX_READ_FILES = 500
_MAX_SCANNED_FOLDERS = 5_000
_HEAD_BYTES = 16_384
_MAX_HASHED_BYTES = 262_144
_MAX_NAME_LENGTH = 64
_MAX_DESCRIPTION_LENGTH = 500


def front_matter(text: str) -> dict[str, str]:
    """Return the top-level fields, each joined to one line, without non-text values. Empty without front matter."""
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
        elif (field := _FIELD.fullmatch(line)) is not None:
            current = fields.setdefault(field[1], [])
            current[:] = [field[2] or ""]
        else:
            current = []
    return {name: value for name, parts in fields.items() if (value := _value(parts))}


def _value(lines: list[str]) -> str:
    first = lines[0].strip()
    if _BLOCK.fullmatch(first):
        return _in_one_line(" ".join(lines[1:]))
    joined = " ".join(line.strip() for line in lines).strip()
    if (quoted := _QUOTED.fullmatch(joined)) is not None:
        double, single = quoted.groups()
        return _in_one_line(_ESCAPED.sub(_unescape, double) if double is not None else single.replace("''", "'"))
    if joined.startswith(('"', "'", *_NOT_PLAIN)):
        return ""
    return _in_one_line(" ".join(re.sub(r"(?:^|[ \t])#.*", "", line) for line in lines))


def _unescape(escape: "re.Match[str]") -> str:
    return {"n": "\n", "t": "\t"}.get(escape[1], escape[1])


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


@dataclass(frozen=True, slots=True)
class Skill:
    """`is_own`: it lies in a folder of the person, not of the workspace. `digest` covers its SKILL.md."""

    name: str
    description: str
    file: Path
    is_own: bool = False
    digest: bytes = b""


@dataclass(frozen=True, slots=True)
class FoundSkills:
    """`skills` in the order of their precedence, also those whose name is taken; `unread` are beyond the limit."""

    skills: tuple[Skill, ...] = ()
    broken: tuple[Path, ...] = ()
    unread: tuple[Path, ...] = ()

    @property
    def of_workspace(self) -> tuple[Skill, ...]:
        return tuple(skill for skill in self.skills if not skill.is_own)

    @property
    def fingerprint(self) -> str:
        """Covers what a person decides about: the skills of the workspace. Empty without any."""
        skills = sorted((str(skill.file), skill.digest) for skill in self.of_workspace)
        return hashlib.blake2b(msgspec.msgpack.encode(skills), digest_size=16).hexdigest() if skills else ""


def find_skills(workspace: Path | None, home: Path, disabled: Collection[str] = ()) -> FoundSkills:
    """Return all skills for a workspace, or the person's own. Blocking: call it in a thread."""
    own = _own_folders(home)
    folders = [*(_folders_of_workspace(workspace, home) if workspace is not None else ()), *own]
    files = list({file: within for folder, within in reversed(folders) for file in reversed(_files(folder))}.items())
    files.reverse()
    skills: list[Skill] = []
    broken: list[Path] = []
    names: set[str] = set()
    looked_at = 0
    while looked_at < min(len(files), _MAX_READ_FILES) and len(names) < _MAX_SKILLS:
        file, within = files[looked_at]
        looked_at += 1
        skill = _read(file, within, is_own=(within, within) in own)
        if skill is None:
            broken.append(file)
            continue
        skills.append(skill)
        if str(file) not in disabled:
            names.add(skill.name)
    return FoundSkills(tuple(skills), tuple(broken), tuple(file for file, _ in files[looked_at:]))


def skills_part(context: PromptContext) -> PromptPart | None:
    """Return the part that lists the skills.

    If two share a name, the nearest wins: the workspace, then its parent folders, then the user's own.

    Skills that a person switched off are left out, and those of a workspace that nobody has trusted as they are.
    """
    disabled = context.skills.disabled if context.skills is not None else ()
    looked = find_skills(context.workspace, context.home, disabled)
    if looked == FoundSkills():
        return None
    trust = context.skills.trust_of(context.workspace, looked.fingerprint) if context.skills is not None else "trusted"
    usable: dict[str, Skill] = {}
    for skill in looked.skills:
        if str(skill.file) not in disabled and (skill.is_own or trust == "trusted"):
            usable.setdefault(skill.name, skill)
    remarks = [*_broken_remarks(looked.broken), *_unread_remarks(looked.unread)]
    if trust == "unknown":
        first, *others = looked.of_workspace
        remarks.append(PromptRemark(code="untrusted_skills", path=clean_name(str(first.file)), count=len(others)))
    if not usable and not remarks:
        return None
    lines = "\n".join(f"- {skill.name}: {skill.description} (`{skill.file}`)" for skill in usable.values())
    return PromptPart(
        name="skills",
        text=Template(prompt_text("skills")).safe_substitute(skills=lines) if usable else "",
        sources=tuple(str(skill.file) for skill in usable.values()),
        remarks=tuple(remarks),
    )


def _broken_remarks(broken: tuple[Path, ...]) -> list[PromptRemark]:
    if not broken:
        return []
    return [PromptRemark(code="no_front_matter", path=clean_name(str(broken[0])), count=len(broken) - 1)]


def _unread_remarks(files: tuple[Path, ...]) -> list[PromptRemark]:
    if not files:
        return []
    return [PromptRemark(code="too_many_skills", path=clean_name(str(files[0])), most=_MAX_SKILLS)]


def _folders_of_workspace(workspace: Path, home: Path) -> Iterator[tuple[Path, Path]]:
    """Pairs of a skills folder and the root folder that its links must not leave."""
    roots = workspace_folders(workspace, home)
    for folder in reversed(roots):
        yield from ((folder / name, roots[0]) for name in _SKILL_FOLDERS)


def _own_folders(home: Path) -> tuple[tuple[Path, Path], ...]:
    return tuple((home / name, home / name) for name in USER_SKILLS)


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(
            subfolder / NAME
            for subfolder in islice(folder.iterdir(), _MAX_SCANNED_FOLDERS)
            if _is_file(subfolder / NAME)
        )
    except OSError:
        return []


def _is_file(file: Path) -> bool:
    try:
        return file.is_file()
    except OSError:  # inside an unreadable folder
        return False


def _read(file: Path, within: Path, *, is_own: bool) -> Skill | None:
    content = read_inside(file, within, _MAX_HASHED_BYTES) or b""
    fields = front_matter(content[:_HEAD_BYTES].decode("utf-8", "replace"))
    name, description = (visible_text(fields.get(field, "")) for field in ("name", "description"))
    # The path goes into the prompt: a folder name must not inject lines into it.
    if not name or not description or len(name) > _MAX_NAME_LENGTH or not str(file).isprintable():
        return None
    if len(description) > _MAX_DESCRIPTION_LENGTH:
        description = f"{description[:_MAX_DESCRIPTION_LENGTH]}…"
    return Skill(name, description, file, is_own, hashlib.blake2b(content, digest_size=16).digest())
