"""What the app knows about skills beside their folders: where installed ones come from, and which are switched off."""

import logging
from datetime import datetime
from pathlib import Path

import msgspec

from errand.engine.core.errors import ConfigurationError
from errand.printable import reason
from errand.regular_file import read_regular, write_atomically

_log = logging.getLogger(__name__)

_LARGEST = 1_000_000


class InstalledSkill(msgspec.Struct, frozen=True):
    """`source` is an address or a folder, `path` the folder in it, `fingerprint` that of the files as installed."""

    source: str
    path: str
    commit: str
    fingerprint: str
    installed_at: datetime


class RemovedSkill(msgspec.Struct, frozen=True):
    """`folder` is the name of its folder among those of removed skills."""

    skill: InstalledSkill
    folder: str
    removed_at: datetime


class SkillState(msgspec.Struct, frozen=True):
    """`installed` and `removed` by SKILL.md, `disabled` are the SKILL.md files of skills that are switched off."""

    installed: dict[str, InstalledSkill] = {}
    disabled: tuple[str, ...] = ()
    removed: dict[str, RemovedSkill] = {}


def read_skill_state(file: Path) -> SkillState:
    """Nothing is installed or switched off if there is no file. Raises `ConfigurationError` if it cannot be read."""
    try:
        return msgspec.json.decode(read_regular(file, _LARGEST), type=SkillState)
    except FileNotFoundError:
        return SkillState()
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{file} cannot be read ({reason(error)}). Delete it: all skills are switched on then."
        ) from error


def write_skill_state(file: Path, state: SkillState) -> None:
    """Raises OSError."""
    write_atomically(file, msgspec.json.format(msgspec.json.encode(state)))


def disabled_skills(file: Path) -> frozenset[str]:
    """The SKILL.md files of skills that are switched off; none if the file cannot be read."""
    try:
        return frozenset(read_skill_state(file).disabled)
    except ConfigurationError as error:
        _log.warning("%s", error)
        return frozenset()
