"""What the app knows about skills beside their folders: where installed ones come from, and which are switched off."""

import logging
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from errand.engine.core.errors import ConfigurationError
from errand.protocol.base import Trust
from errand.system.regular_file import read_regular, write_atomically
from errand.text.printable import reason

_log = logging.getLogger(__name__)

_MAX_FILE_BYTES = 1_000_000
MAX_TRUSTED_WORKSPACES = 1_000


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


class SkillTrust(msgspec.Struct, frozen=True):
    """A person's decision about the skills that a workspace brings, for exactly this `fingerprint` of them."""

    fingerprint: str
    is_trusted: bool
    at: datetime


class SkillState(msgspec.Struct, frozen=True):
    """`installed` and `removed` by SKILL.md, `disabled` are the SKILL.md files of skills that are switched off.

    `trust` is by workspace.
    """

    installed: dict[str, InstalledSkill] = {}
    disabled: tuple[str, ...] = ()
    removed: dict[str, RemovedSkill] = {}
    trust: dict[str, SkillTrust] = {}

    def trust_of(self, workspace: Path, fingerprint: str) -> Trust:
        """Return the decision about the skills of a workspace; there is nothing to decide without any."""
        decision = self.trust.get(str(workspace))
        if not fingerprint:
            return "trusted"
        if decision is None or decision.fingerprint != fingerprint:
            return "unknown"
        return "trusted" if decision.is_trusted else "declined"

    def decided(self, workspace: Path, fingerprint: str, *, is_trusted: bool) -> "SkillState":
        """Return the state with a new decision; only the newest decisions are held."""
        others = {folder: trust for folder, trust in self.trust.items() if folder != str(workspace)}
        newest = dict(list(others.items())[1 - MAX_TRUSTED_WORKSPACES :])
        decision = SkillTrust(fingerprint, is_trusted, datetime.now(UTC))
        return msgspec.structs.replace(self, trust={**newest, str(workspace): decision})


def read_skill_state(file: Path) -> SkillState:
    """Read the state; without a file nothing is installed or switched off.

    Raises `ConfigurationError` if it cannot be read.
    """
    try:
        return msgspec.json.decode(read_regular(file, _MAX_FILE_BYTES), type=SkillState)
    except FileNotFoundError:
        return SkillState()
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{file} cannot be read ({reason(error)}). Delete it: all skills are switched on then."
        ) from error


def write_skill_state(file: Path, state: SkillState) -> None:
    """Raises OSError."""
    write_atomically(file, msgspec.json.format(msgspec.json.encode(state)))


def skill_state(file: Path) -> SkillState:
    """Return the state for a system prompt; none is switched off or trusted if the file cannot be read."""
    try:
        return read_skill_state(file)
    except ConfigurationError as error:
        _log.warning("%s", error)
        return SkillState()
