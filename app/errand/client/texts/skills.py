"""Texts about skills: where one comes from, and all of one that is to be looked at before it is installed."""

from collections.abc import Iterator

from errand.client.number_format import day_text
from errand.client.safe_text import escape_hidden, escape_hidden_line
from errand.protocol.skills import Skill, SkillPreview, SkillScript
from errand.text.translation import grouped, tr, trn

_COMMIT = 10


def origin_text(skill: Skill) -> str:
    """Return the origin of a skill, and what else there is to know, on one line."""
    match skill.origin:
        case "workspace":
            origin = tr("from this folder")
        case "user":
            origin = tr("yours")
        case "installed":
            source = _source_text(skill.source, skill.path, skill.commit)
            origin = tr("installed from {source}").format(source=source)
    when = day_text(skill.installed_at.astimezone()) if skill.installed_at else ""
    shadow = tr("not used: {other} has the same name").format(other=escape_hidden_line(skill.shadowed_by))
    return " · ".join(
        part
        for part in (
            origin,
            when,
            trn("{n} script", "{n} scripts", skill.scripts) if skill.scripts else "",
            "" if skill.is_enabled else tr("off"),
            "" if skill.is_trusted else tr("not used: nobody has trusted the skills of this folder"),
            tr("files changed since it was installed") if skill.is_changed else "",
            shadow if skill.shadowed_by else "",
        )
        if part
    )


def source_text(preview: SkillPreview) -> str:
    """Return the origin of the skill of a preview."""
    return _source_text(preview.source, preview.path, preview.commit)


def file_lines(preview: SkillPreview) -> list[str]:
    """Return the files with their sizes in bytes, in columns."""
    width = max(len(grouped(file.size)) for file in preview.files)
    script = tr("(script)")
    return [
        f"{grouped(file.size):>{width}}  {escape_hidden_line(file.path)}{f'  {script}' if file.is_script else ''}"
        for file in preview.files
    ]


def text_parts(preview: SkillPreview) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of SKILL.md and of each script."""
    yield "SKILL.md", escape_hidden(preview.text)
    for script in preview.scripts:
        name = " ".join(filter(None, (escape_hidden_line(script.path), _script_remark(script))))
        yield name, escape_hidden(script.text)


def _script_remark(script: SkillScript) -> str:
    if not script.text:
        return tr("(too long to show)") if script.is_cut else tr("(not a text file)")
    return tr("(beginning only)") if script.is_cut else ""


def _source_text(source: str, path: str, commit: str) -> str:
    parts = (source, path, tr("commit {commit}").format(commit=commit[:_COMMIT]) if commit else "")
    return escape_hidden_line(", ".join(part for part in parts if part))
