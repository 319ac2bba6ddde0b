"""The profile of macOS' sandbox-exec with the same bounds, as text: no Mac has tried it, and nothing uses it yet."""

from collections.abc import Iterable
from pathlib import Path

# What programs write to that is no file of anybody.
_DEVICES = ("/dev/null", "/dev/zero", "/dev/tty", "/dev/dtracehelper")


def seatbelt_profile(
    writable: Iterable[Path],
    readable: Iterable[Path],
    hidden: Iterable[Path],
    protected: Iterable[Path],
    proxy_port: int | None,
) -> str:
    """The text for `sandbox-exec -p`. The last rule that matches decides, so the order is that of the exceptions.

    All paths are real. `protected` need not exist: here a rule is a path. `proxy_port` is on this machine; without one
    there is no network.
    """
    lines = [
        "(version 1)",
        "(deny default)",
        "(allow process-exec process-fork)",
        "(allow signal process-info* (target same-sandbox))",
        "(allow sysctl-read mach-lookup ipc-posix-sem ipc-posix-shm)",
        "(allow file-read*)",
        *(f"(allow file-write* (literal {_quoted(path)}))" for path in _DEVICES),
        *(f"(deny file-read* file-write* (subpath {_quoted(path)}))" for path in hidden),
        *(f"(allow file-read* (subpath {_quoted(path)}))" for path in readable),
        *(f"(allow file-read* file-write* (subpath {_quoted(path)}))" for path in writable),
        *(f"(deny file-write* (subpath {_quoted(path)}))" for path in protected),
    ]
    if proxy_port is not None:
        lines.append(f'(allow network-outbound (remote ip "localhost:{proxy_port}"))')
    return "\n".join(lines) + "\n"


def _quoted(path: Path | str) -> str:
    text = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
