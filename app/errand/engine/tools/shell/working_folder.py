"""Reads the working folder in which a shell has ended, which the shell reports through a descriptor."""

import os
import re
from contextlib import suppress
from pathlib import Path

_CHANGES = re.compile(r"\b(?:cd|pushd|popd)\b")
_MAX_PATH_BYTES = 4_096


class FolderReport:
    """A pipe on which bash names its folder when it ends; nothing that a command prints is taken for it.

    The shell writes to a descriptor of its own. A command that writes there too gains nothing: it may change its
    folder anyway, and the policy judges the next command in the folder where it will run.
    """

    def __init__(self) -> None:
        self._read, self.descriptor = os.pipe()
        os.set_blocking(self._read, False)

    @staticmethod
    def is_needed(shell: str, line: str) -> bool:
        """Most commands change no folder, and run exactly as given."""
        return os.path.basename(shell) == "bash" and _CHANGES.search(line) is not None

    def reported(self, line: str) -> str:
        """Return the line with the report at its end, whatever ends it."""
        return f"trap 'builtin pwd -P >&{self.descriptor}' EXIT\n{line}"

    def close(self) -> Path | None:
        """Return where the shell ended; None if it did not say. `descriptor` belongs to the launch by now."""
        try:
            data = os.read(self._read, _MAX_PATH_BYTES + 2)
        except OSError:
            data = b""
        finally:
            os.close(self._read)
        name = data.removesuffix(b"\n")
        with suppress(UnicodeDecodeError):
            if name.startswith(b"/") and len(name) <= _MAX_PATH_BYTES and b"\0" not in name:
                return Path(name.decode())
        return None
