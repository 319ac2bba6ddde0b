"""Switches the sandbox of an engine's commands on and off."""

import shutil

import pytest

from errand.engine.core.settings import Settings

_HAS_SANDBOX = shutil.which("bwrap") is not None

# Values for a test that runs without the sandbox and in it.
SANDBOXES = (
    pytest.param(False, id="without the sandbox"),
    pytest.param(True, id="in the sandbox", marks=pytest.mark.skipif(not _HAS_SANDBOX, reason="needs bubblewrap")),
)


def set_sandbox(settings: Settings, is_on: bool) -> None:
    settings.set("command_sandbox", "required" if is_on else "off")
