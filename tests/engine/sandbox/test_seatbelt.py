"""The text of the profile for macOS. No Mac has read it."""

from pathlib import Path

from app.engine.sandbox.seatbelt import seatbelt_profile


def test_exceptions_come_after_what_they_except() -> None:
    lines = seatbelt_profile(
        (Path("/w"),), (Path("/data/out"),), (Path("/home/.ssh"), Path("/data")), (Path("/w/.git/hooks"),), 3128
    ).splitlines()
    assert lines[:2] == ["(version 1)", "(deny default)"]
    assert lines[-6:] == [
        '(deny file-read* file-write* (subpath "/home/.ssh"))',
        '(deny file-read* file-write* (subpath "/data"))',
        '(allow file-read* (subpath "/data/out"))',
        '(allow file-read* file-write* (subpath "/w"))',
        '(deny file-write* (subpath "/w/.git/hooks"))',
        '(allow network-outbound (remote ip "localhost:3128"))',
    ]


def test_without_a_proxy_there_is_no_network() -> None:
    assert "network" not in seatbelt_profile((), (), (), (), None)


def test_a_path_cannot_end_its_text() -> None:
    profile = seatbelt_profile((Path('/w") (allow default) ("\\'),), (), (), (), None)
    assert profile.count("(allow default)") == 1
    assert '(subpath "/w\\") (allow default) (\\"\\\\"))' in profile
