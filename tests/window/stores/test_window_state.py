"""The stored state of the window."""

import stat
from pathlib import Path

from PySide6.QtWidgets import QApplication

from app.window.stores.window_state import WindowStateStore


def test_what_is_kept_is_there_again(qapp: QApplication, tmp_path: Path) -> None:
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


def test_a_file_that_cannot_be_read_starts_the_window_afresh(qapp: QApplication, tmp_path: Path) -> None:
    (tmp_path / "window.json").write_text('{"tabs": 7')
    assert WindowStateStore(tmp_path / "window.json").settings.tabs == []


def test_a_folder_that_cannot_be_written_costs_no_work(qapp: QApplication, tmp_path: Path) -> None:
    state = WindowStateStore(tmp_path / "gone" / "window.json")
    state.flush()
    assert not (tmp_path / "gone").exists()


def test_no_more_than_twenty_closed_tabs_are_remembered(qapp: QApplication, tmp_path: Path) -> None:
    state = WindowStateStore(tmp_path / "window.json")
    for number in range(30):
        state.add_closed(f"conv_{number}")
    assert state.settings.closed == [f"conv_{number}" for number in range(10, 30)]
