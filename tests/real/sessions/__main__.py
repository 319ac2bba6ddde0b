"""Makes sessions of other programs anew: `python -m tests.real.sessions FOLDER [PROGRAM …]`.

FOLDER is a temporary folder. The programs are installed into it by npm, and then run in a network namespace that has
nothing but the loopback, with a home in that folder. Needs node, npm and bubblewrap.
"""

import asyncio
import subprocess
import sys
import time
from pathlib import Path

from tests.engine.data.importers.test_real_sessions import outline
from tests.engine.data.test_round_trip import home
from tests.real.sessions import claude_code, codex, gemini, goose, opencode, pi
from tests.real.sessions.short_form import shorten

PROGRAMS = {"opencode": opencode, "gemini": gemini, "codex": codex, "claude": claude_code, "pi": pi, "goose": goose}
_NO_NETWORK = (
    "bwrap",
    "--unshare-net",
    "--unshare-pid",
    "--die-with-parent",
    "--dev-bind",
    "/",
    "/",
    "--proc",
    "/proc",
)


def main(folder: Path, names: list[str]) -> None:
    for name in names or list(PROGRAMS):
        programs = folder / "npm" / name
        if not (programs / "node_modules").exists():
            install = ("npm", "install", "--no-audit", "--no-fund", "--silent", "--prefix", str(programs))
            subprocess.run((*install, PROGRAMS[name].PACKAGE), check=True)
        again = (sys.executable, "-m", "tests.real.sessions", "--inside", str(folder), name)
        subprocess.run((*_NO_NETWORK, *again), check=True)


def inside(folder: Path, name: str) -> None:
    sessions = PROGRAMS[name].run(folder / name, folder / "npm" / name)
    replaced = {str(folder / name / "work"): "/home/nobody/work", str(folder / name / "home"): "/home/nobody"}
    replaced |= {old.strip("/"): new.strip("/") for old, new in replaced.items()}
    shorten(sessions, folder / name / "short", replaced)
    asyncio.run(_import(sessions, folder / name))


async def _import(sessions: Path, folder: Path) -> None:
    """Import what was written, all of it, and show what arrives."""
    async with home(folder / f"data-{time.time():.0f}") as data_home:
        done = await data_home.take(sessions)
        sys.stdout.write(f"{await outline(data_home, done)}\n{sessions}: {done}\n")
        assert done.conversations, "nothing arrived"
        assert not any("cannot be read" in left.kind for left in done.left), done.left


if __name__ == "__main__":
    if sys.argv[1] == "--inside":
        inside(Path(sys.argv[2]), sys.argv[3])
    else:
        main(Path(sys.argv[1]).absolute(), sys.argv[2:])
