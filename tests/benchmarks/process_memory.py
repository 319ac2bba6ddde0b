"""Memory of processes as the kernel counts it."""

from pathlib import Path

_KB_A_MB = 1024


def pss_mb(pid: int | str = "self") -> float:
    """The proportional set size: pages that n processes share count 1/n."""
    return _rollup(pid, "Pss") / _KB_A_MB


def private_mb() -> float:
    """Private memory of this process: the share of Qt's libraries varies by MBs with other processes."""
    return _rollup("self", "Private_Dirty") / _KB_A_MB


def status_kb(pid: int, field: str) -> int:
    """A value of the process's status in KB."""
    return _field(Path(f"/proc/{pid}/status").read_text(), field)


def also_mapping(library: str) -> int:
    """Return how many other processes map the same file that is mapped here under a name with `library`."""
    own = _mapped("self", library)
    others = (entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit())
    # This process is one of them.
    return sum(bool(own & _mapped(pid, library)) for pid in others) - bool(own)


class PeakMemory:
    """The peak of a process from now on. The kernel keeps it: nothing is sampled."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        Path(f"/proc/{pid}/clear_refs").write_text("5")
        self.before_kb = status_kb(pid, "VmRSS")

    def growth_mb(self) -> float:
        return (status_kb(self._pid, "VmHWM") - self.before_kb) / _KB_A_MB

    def pss_mb(self) -> float:
        """The peak, without the part of shared pages that other processes have now."""
        shared = status_kb(self._pid, "VmRSS") - _rollup(self._pid, "Pss")
        return (status_kb(self._pid, "VmHWM") - shared) / _KB_A_MB


def _mapped(pid: str, library: str) -> set[tuple[str, str]]:
    """Device and inode of the mapped files with that name."""
    try:
        lines = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # it ended, or is another person's
        return set()
    return {(fields[3], fields[4]) for line in lines if library in line and len(fields := line.split()) > 5}


def _rollup(pid: int | str, field: str) -> int:
    return _field(Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii"), field)


def _field(text: str, field: str) -> int:
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith(f"{field}:"))
