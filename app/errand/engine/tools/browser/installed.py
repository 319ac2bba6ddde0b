"""Finds Chrome or Chromium, and says what to install if there is none."""

import importlib.util
import os
import shutil
import sys
from functools import cache
from pathlib import Path

# The shells without a window first: their pages open three times as fast.
NAMES = (
    "chromium-headless-shell",
    "chrome-headless-shell",
    "google-chrome",
    "google-chrome-stable",
    "chromium",
    "chromium-browser",
    "google-chrome-beta",
    "microsoft-edge",
    "brave-browser",
)
_ELSEWHERE = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/snap/bin/chromium",
    "/var/lib/flatpak/exports/bin/org.chromium.Chromium",
    "/var/lib/flatpak/exports/bin/com.google.Chrome",
)
_NO_BROWSER = (
    "No Chrome or Chromium was found. Install one (Debian: sudo apt install chromium-headless-shell; Ubuntu: sudo apt "
    "install chromium; Fedora: sudo dnf install chromium; elsewhere google.com/chrome). If it is installed, name its "
    "program in the environment variable ERRAND_BROWSER. Pages that need no scripts can be read with web_fetch."
)
_NO_DRIVER = (
    "The browser tool needs Playwright, which is not installed. Install it with: pip install "
    "'errand-desktop[browser]'. Pages that need no scripts can be read with web_fetch."
)
_USERNS = Path("/proc/sys/kernel/unprivileged_userns_clone")
_APPARMOR = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")


def find_browser(named: str, path: str) -> Path | None:
    """Return the program in `named`, else the first of the usual ones in the folders of `path`, or where packages
    put it.
    """
    if named:
        program = shutil.which(named, path=path)
        return Path(program) if program else None
    for name in NAMES:
        if program := shutil.which(name, path=path):
            return Path(program)
    return next((Path(candidate) for candidate in _ELSEWHERE if os.access(candidate, os.X_OK)), None)


def problem(program: Path | None) -> str | None:
    """Return what is missing, with what to do; None if nothing is."""
    if not _has_driver():
        return _NO_DRIVER
    return _NO_BROWSER if program is None else None


@cache
def _has_driver() -> bool:
    return importlib.util.find_spec("playwright") is not None


def has_own_sandbox() -> bool:
    """Return True if the browser can confine its pages itself: not as root, and only with user namespaces."""
    if sys.platform != "linux":
        return True
    if os.geteuid() == 0:
        return False
    return _reads(_USERNS) != "0" and _reads(_APPARMOR) != "1"


def _reads(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii").strip()
    except OSError:
        return ""
