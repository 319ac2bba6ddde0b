"""Skills: folders with instructions and scripts for certain kinds of work."""

from typing import Literal

from errand.protocol.base import EmptyResult, Method, Timestamp, Trust, Wire

SkillOrigin = Literal["workspace", "user", "installed"]


class Skill(Wire, frozen=True, kw_only=True):
    """A skill that agents may use. `file` is its SKILL.md.

    `origin`: `workspace` lies in the workspace or a folder above, `user` in a skills folder of the person, `installed`
    was put there by `skill/install`, from `source` (and `path` in it) at `commit`. `is_changed`: its files are not
    those that were installed. `shadowed_by` is the SKILL.md of a nearer skill with its name, which is used instead.
    """

    name: str
    description: str
    file: str
    origin: SkillOrigin
    is_enabled: bool = True
    scripts: int = 0
    source: str = ""
    path: str = ""
    commit: str = ""
    installed_at: Timestamp | None = None
    is_changed: bool = False
    shadowed_by: str = ""
    is_trusted: bool = True


class SkillFile(Wire, frozen=True, kw_only=True):
    """A file of a skill; `path` is relative to its folder, `size` in bytes."""

    path: str
    size: int
    is_script: bool = False


class SkillScript(Wire, frozen=True, kw_only=True):
    """A script to be looked at. `is_cut`: only the beginning of a long one; `text` is empty for a binary program."""

    path: str
    text: str
    is_cut: bool = False


class SkillPreview(Wire, frozen=True, kw_only=True):
    """All of a skill. `text` is its whole SKILL.md; `fingerprint` covers all files and is what may be installed.

    `problem` says why it cannot be installed as it is, for example because there is a skill with its name.
    """

    name: str
    description: str
    source: str
    path: str
    ref: str
    commit: str
    text: str
    files: tuple[SkillFile, ...]
    scripts: tuple[SkillScript, ...]
    fingerprint: str
    problem: str = ""


class SkillListParams(Wire, frozen=True, kw_only=True):
    """Without `workspace`, only the person's own skills."""

    workspace: str | None = None


class SkillListResult(Wire, frozen=True, kw_only=True):
    """`folder` is where skills are installed. `broken` are SKILL.md files without a name and a description.

    `fingerprint` covers the skills of the workspace, and is empty without any; `trust` is what a person decided about
    exactly these.
    """

    skills: tuple[Skill, ...]
    folder: str
    broken: tuple[str, ...] = ()
    fingerprint: str = ""
    trust: Trust = "trusted"


class SkillPreviewParams(Wire, frozen=True, kw_only=True):
    """`source` is the absolute path of a folder, or the https address of a git repository.

    `path` is a folder in it, `ref` a branch or tag of a repository.
    """

    source: str
    path: str = ""
    ref: str = ""


class SkillPreviewResult(Wire, frozen=True, kw_only=True):
    """`preview` is null if the source itself is no skill: `choices` are the folders in it that are."""

    preview: SkillPreview | None = None
    choices: tuple[str, ...] = ()


class SkillInstallParams(Wire, frozen=True, kw_only=True):
    """The fields of the preview that the person saw. It is refused if the files have another fingerprint now."""

    source: str
    fingerprint: str
    path: str = ""
    ref: str = ""


class SkillResult(Wire, frozen=True, kw_only=True):
    skill: Skill


class SkillRemoveParams(Wire, frozen=True, kw_only=True):
    """`file` is the SKILL.md of an installed skill."""

    file: str


class SkillRestoreParams(Wire, frozen=True, kw_only=True):
    """`file` is the SKILL.md of a skill that was removed in the last 30 days."""

    file: str


class SkillEnableParams(Wire, frozen=True, kw_only=True):
    """Let agents be told of the skill, or not, from the next task on."""

    file: str
    is_enabled: bool


class SkillTrustParams(Wire, frozen=True, kw_only=True):
    """Trust or distrust the skills that a workspace brings. Refused if they have another fingerprint now."""

    workspace: str
    fingerprint: str
    trusted: bool


SKILL_LIST = Method("skill/list", SkillListParams, SkillListResult, False, "List skills.")

SKILL_PREVIEW = Method(
    "skill/preview", SkillPreviewParams, SkillPreviewResult, False, "Show all of a skill; installs nothing."
)

SKILL_INSTALL = Method("skill/install", SkillInstallParams, SkillResult, True, "Install a skill that was shown.")

SKILL_REMOVE = Method("skill/remove", SkillRemoveParams, EmptyResult, True, "Remove an installed skill.")

SKILL_RESTORE = Method(
    "skill/restore", SkillRestoreParams, SkillResult, True, "Put a removed skill back, with its files as they were."
)

SKILL_ENABLE = Method("skill/enable", SkillEnableParams, EmptyResult, True, "Switch a skill on or off.")


SKILL_TRUST = Method(
    "skill/trust", SkillTrustParams, SkillListResult, True, "Trust the skills of a workspace as they are, or not."
)

METHODS = (SKILL_LIST, SKILL_PREVIEW, SKILL_INSTALL, SKILL_REMOVE, SKILL_RESTORE, SKILL_ENABLE, SKILL_TRUST)
