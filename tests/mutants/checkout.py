"""A sandboxed copy of the checkout for mutants: a mutant of process-ending code could end any process.

It sees only its own processes, and can write only below its own folder (Linux, `unshare` and `mount`).
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import time
import venv
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_NAMESPACES = ("--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
_SHUT_IN = 'set -e; mount --bind "$1" "$1"; mount -o remount,bind,ro /; cd "$1/checkout"; shift; "$@"'


@dataclass(frozen=True, slots=True)
class Run:
    """One run of tests: `code` is pytest's exit code, None after a timeout; `failed` names the first failed test."""

    code: int | None
    seconds: float
    failed: str


class Checkout:
    """Copies the files tracked by git from the work tree, and an environment whose `errand` is the copy."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "checkout"
        self._folder = folder
        for name in ("checkout", "tmp", "home"):
            (folder / name).mkdir()
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=_ROOT, capture_output=True, text=True, check=True)
        for name in filter(None, listed.stdout.split("\0")):
            if (_ROOT / name).is_file():
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(_ROOT / name, self.root / name)
        venv_folder = self.root / ".venv"
        venv.create(venv_folder, symlinks=True)
        packages = Path(sysconfig.get_path("purelib", vars={"base": str(venv_folder), "platbase": str(venv_folder)}))
        # Not as a site directory: the work tree, which is installed there, must stay invisible.
        (packages / "checkout.pth").write_text(f"{self.root}\n{self.root / 'app'}\n{sysconfig.get_path('purelib')}\n")
        (self.root / "app" / "errand" / "resources").symlink_to(self.root / "resources")
        self._python = venv_folder / "bin" / "python"

    def test(self, tests: tuple[str, ...], limit_s: float | None = None) -> Run:
        begun = time.monotonic()
        command = [
            *("unshare", *_NAMESPACES, *(() if os.geteuid() == 0 else ("--map-root-user",))),
            *("sh", "-c", _SHUT_IN, "sh", str(self._folder)),
            *(str(self._python), "-m", "pytest", "-x", "-p", "no:cacheprovider", *tests),
        ]
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        environment = inherited | {"HOME": str(self._folder / "home"), "TMPDIR": str(self._folder / "tmp")}
        try:
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=limit_s, errors="replace"
            )
        except subprocess.TimeoutExpired:
            return Run(None, time.monotonic() - begun, "")
        failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR "))]
        last = (done.stdout + done.stderr).splitlines()[-1:]
        return Run(done.returncode, time.monotonic() - begun, (failed or last or [""])[0])


def refuse_elsewhere() -> None:
    """`SystemExit` if mutants cannot be sandboxed."""
    text = "Mutants run only where they can be shut in: Linux with `unshare` and `mount`, and namespaces allowed."
    tool = shutil.which("unshare")
    if sys.platform != "linux" or tool is None:
        raise SystemExit(text)
    user = () if os.geteuid() == 0 else ("--map-root-user",)
    tried = subprocess.run(
        [tool, *_NAMESPACES, *user, "sh", "-c", "mount -o remount,bind,ro /"], capture_output=True, text=True
    )
    if tried.returncode:
        raise SystemExit(f"{text} {tried.stderr.strip()}")
