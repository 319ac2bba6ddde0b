"""Which sandbox holds, by what the machine has and by the setting."""

from collections.abc import Generator
from pathlib import Path

import msgspec
import pytest

from errand.engine.core.errors import ConfigurationError, InvalidParams
from errand.engine.core.setting_lists import writable_folders_of
from errand.engine.core.settings import Settings
from errand.engine.sandbox import landlock
from errand.engine.sandbox.detection import (
    find_sandbox,
    forget_sandbox,
    missing_sandbox,
    sandbox_of,
    short_text,
    status_of,
)
from errand.protocol.engine import SandboxMode
from errand.system.paths import Paths


@pytest.fixture
def no_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    forget_sandbox()
    monkeypatch.setenv("PATH", "/nowhere")
    yield
    forget_sandbox()


@pytest.fixture
def no_landlock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "version", lambda: 0)


def test_bubblewrap_is_used_where_it_works() -> None:
    assert find_sandbox().form == "bubblewrap"
    assert sandbox_of("auto") == sandbox_of("required") == find_sandbox()
    assert status_of("auto").text.startswith("Commands run in a sandbox (bubblewrap)")
    assert status_of("auto").advice == ""


def test_off_is_off_and_says_so() -> None:
    assert sandbox_of("off") is None
    assert status_of("off").form == "none"
    assert "the setting command_sandbox is off" in status_of("off").text


@pytest.mark.usefixtures("no_bubblewrap")
def test_without_bubblewrap_landlock_holds_and_people_are_told() -> None:
    sandbox = sandbox_of("required")
    assert sandbox is not None and sandbox.form == "landlock"
    status = status_of("auto")
    assert "the weaker sandbox (Landlock)" in status.text and "bubblewrap is not installed" in status.text
    assert "Install bubblewrap" in status.advice
    assert short_text("auto") == "runs in the weaker sandbox (Landlock)"


@pytest.mark.usefixtures("no_bubblewrap", "no_landlock")
def test_without_either_auto_runs_bare_and_says_so_and_required_refuses(tmp_path: Path) -> None:
    assert sandbox_of("auto") is None
    assert "Commands run without a sandbox." in status_of("auto").text
    assert "can do what you can do" in short_text("auto")
    with pytest.raises(ConfigurationError, match=r"bubblewrap is not installed\. Install bubblewrap"):
        sandbox_of("required")
    assert status_of("required").text.startswith("No command runs")


@pytest.mark.usefixtures("no_bubblewrap", "no_landlock")
def test_that_there_is_none_is_said_once_for_a_data_directory(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    paths.prepare()
    output = missing_sandbox(paths, "auto")
    assert output is not None and not output.holds and "without a sandbox" in output.text
    assert missing_sandbox(paths, "auto") is None
    assert missing_sandbox(paths, "off") is None
    assert missing_sandbox(paths, "auto") is not None, "it was off meanwhile, which is the person's own choice"


def test_nothing_is_said_where_there_is_one(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    paths.prepare()
    assert missing_sandbox(paths, "auto") is None


@pytest.mark.parametrize(("stored", "mode"), [(True, "required"), (False, "auto"), ("off", "off")])
def test_the_switch_of_earlier_settings_is_read(tmp_path: Path, stored: bool | str, mode: SandboxMode) -> None:
    file = tmp_path / "settings.json"
    file.write_bytes(msgspec.json.encode({"command_sandbox": stored, "max_turns": 7}))
    assert (Settings(file).values.command_sandbox, Settings(file).values.max_turns) == (mode, 7)


@pytest.mark.parametrize("text", ["relative", "/", "~", "~/.ssh", "/etc/x", "~/.aws/deep", "/proc", "/tmp;/usr/lib"])
def test_folders_that_must_stay_closed_are_refused(tmp_path: Path, text: str) -> None:
    settings = Settings(tmp_path / "settings.json")
    with pytest.raises(InvalidParams, match="Writable folders"):
        settings.set("writable_folders", text)


def test_writable_folders_are_read(tmp_path: Path) -> None:
    settings = Settings(tmp_path / "settings.json")
    settings.set("writable_folders", "~/notes ; /srv/data/../shared")
    assert writable_folders_of(settings.values.writable_folders) == (Path.home() / "notes", Path("/srv/shared"))


def test_probing_leaves_no_process_behind() -> None:
    """The tests themselves fail for a process that is left."""
    forget_sandbox()
    assert find_sandbox().form == "bubblewrap"
