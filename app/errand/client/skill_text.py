"""Texts about skills: where one comes from, and all of one that is to be looked at before it is installed."""

from collections.abc import Iterator

from errand.client.number_format import count
from errand.client.safe_text import escape_hidden, escape_hidden_line
from errand.protocol.skills import Skill, SkillPreview, SkillScript

_COMMIT = 10


def origin_text(skill: Skill) -> str:
    """Where a skill comes from, and what else there is to know: one line."""
    match skill.origin:
        case "workspace":
            origin = "of the workspace"
        case "user":
            origin = "yours"
        case "installed":
            origin = f"installed from {_source_text(skill.source, skill.path, skill.commit)}"
    when = f"{skill.installed_at.astimezone():%d %b %Y}" if skill.installed_at else ""
    return " · ".join(
        part
        for part in (
            origin,
            when,
            count(skill.scripts, "script") if skill.scripts else "",
            "" if skill.is_enabled else "off",
            "its files were changed since" if skill.is_changed else "",
            f"not used: {escape_hidden_line(skill.shadowed_by)} has the same name" if skill.shadowed_by else "",
        )
        if part
    )


def source_text(preview: SkillPreview) -> str:
    """Where the skill of a preview comes from."""
    return _source_text(preview.source, preview.path, preview.commit)


def file_lines(preview: SkillPreview) -> list[str]:
    """The files with their sizes in bytes, in columns."""
    width = max(len(f"{file.size:,}") for file in preview.files)
    return [
        f"{file.size:>{width},}  {escape_hidden_line(file.path)}{'  (script)' if file.is_script else ''}"
        for file in preview.files
    ]


def text_parts(preview: SkillPreview) -> Iterator[tuple[str, str]]:
    """The name and the text of SKILL.md and of each script."""
    yield "SKILL.md", escape_hidden(preview.text)
    for script in preview.scripts:
        yield f"{escape_hidden_line(script.path)}{_script_remark(script)}", escape_hidden(script.text)


def _script_remark(script: SkillScript) -> str:
    if not script.text:
        return " (a program that is no text: it cannot be shown)" if not script.is_cut else " (too long to be shown)"
    return " (only its beginning)" if script.is_cut else ""


def _source_text(source: str, path: str, commit: str) -> str:
    parts = (source, path, f"commit {commit[:_COMMIT]}" if commit else "")
    return escape_hidden_line(", ".join(part for part in parts if part))
