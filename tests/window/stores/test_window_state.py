"""The stored state of the window."""

import stat
from pathlib import Path

from PySide6.QtWidgets import QApplication

from errand.window.stores.window_state import WindowStateStore


def test_saved_state_is_restored(qapp: QApplication, tmp_path: Path) -> None:
    state = WindowStateStore(tmp_path / "window.json")
    state.settings.tabs = ["conv_1"]
    state.set_draft("conv_1", "half a thought")
    state.set_draft("conv_2", "x")
    state.set_draft("conv_2", "")
    state.flush()
    again = WindowStateStore(tmp_path / "window.json")
    assert again.settings == state.settings
    assert again.settings.drafts == {"conv_1": "half a thought"}
    assert stat.S_IMODE((tmp_path / "window.json").stat().st_mode) == 0o600


def test_an_unreadable_state_file_is_replaced_by_defaults(qapp: QApplication, tmp_path: Path) -> None:
    (tmp_path / "window.json").write_text('{"tabs": 7')
    assert WindowStateStore(tmp_path / "window.json").settings.tabs == []


def test_an_unwritable_folder_does_not_fail_the_window(qapp: QApplication, tmp_path: Path) -> None:
    state = WindowStateStore(tmp_path / "gone" / "window.json")
    state.flush()
    assert not (tmp_path / "gone").exists()


def test_no_more_than_twenty_closed_tabs_are_remembered(qapp: QApplication, tmp_path: Path) -> None:
    state = WindowStateStore(tmp_path / "window.json")
    for number in range(30):
        state.add_closed(f"conv_{number}")
    assert state.settings.closed == [f"conv_{number}" for number in range(10, 30)]
