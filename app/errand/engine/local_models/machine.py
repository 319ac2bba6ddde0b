"""What this machine has for a model: free memory, processor cores, a graphics card."""

import ctypes.util
import platform
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
# Tokens a second of a prompt, for each core and billion parameters that work on a token: measured with llama.cpp on
# two cores of 2020 without AVX-512. A graphics card is at least this many cores.
_PROMPT_TOKENS_PER_CORE = 15.0
_CORES_OF_A_CARD = 64
# Bytes a second that a core reads of the weights; more than eight cores wait for memory.
_BYTES_PER_CORE = 5_000_000_000
_MAX_READING_CORES = 8


@dataclass(frozen=True, slots=True)
class Machine:
    """`memory_bytes` can be used now, including what the system would give up from its caches."""

    memory_bytes: int
    cores: int
    has_gpu: bool

    def prompt_tokens_per_second(self, active_parameters: float) -> float:
        """Estimate how fast a model with so many billion active parameters reads a prompt."""
        cores = max(self.cores, _CORES_OF_A_CARD if self.has_gpu else 0)
        return _PROMPT_TOKENS_PER_CORE * cores / active_parameters

    def tokens_per_second(self, read_bytes: float) -> float:
        """Estimate how fast a model writes of which so many bytes are read for each token."""
        cores = _CORES_OF_A_CARD if self.has_gpu else min(self.cores, _MAX_READING_CORES)
        return _BYTES_PER_CORE * cores / read_bytes


def this_machine() -> Machine:
    """Return what there is now. Reads the file system: call it in a thread."""
    import psutil

    free_bytes = psutil.virtual_memory().available
    limit_bytes = _container_limit()
    return Machine(
        memory_bytes=free_bytes if limit_bytes is None else min(free_bytes, limit_bytes),
        cores=psutil.cpu_count(logical=False) or psutil.cpu_count() or 1,
        has_gpu=_has_gpu(),
    )


def _container_limit() -> int | None:
    """Return the bytes that the container of this process may still take; None without such a limit."""
    with suppress(OSError, ValueError):
        limit, used = ((_CGROUP / name).read_text().strip() for name in ("memory.max", "memory.current"))
        return max(0, int(limit) - int(used))
    return None


@cache
def _has_gpu() -> bool:
    """Return True for a graphics card that a build of llama.cpp can use, with its driver.

    It is looked for once: to find a library, Python starts other programs.
    """
    if sys.platform == "darwin":
        return platform.machine() == "arm64"
    if Path("/dev/nvidiactl").exists():
        return True
    has_card = any(Path("/dev/dri").glob("renderD*"))
    return has_card and ctypes.util.find_library("vulkan") is not None
