"""The door for attachments: what is given is checked, and pictures are copied to where they stay."""

import hashlib
import os
from functools import partial
from pathlib import Path

from app.engine.agent.attached import media_type
from app.engine.errors import InvalidParams
from app.engine.tools.atomic_write import write_atomically
from app.engine.workspace_threads import in_workspace
from app.regular_file import make_folder, open_regular

_MOST = 20
_LARGEST_PICTURE = 10 * 1024 * 1024


async def accept(given: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """The files to attach, each once: pictures as copies in `folder`, others where they are.

    Raises `InvalidParams` for what is not a file that can be read, for too many, and for a picture that is too large.
    """
    paths = tuple(dict.fromkeys(given))
    if len(paths) > _MOST:
        raise InvalidParams(f"{len(paths)} files are attached; at most {_MOST} go with one message.")
    return tuple([await in_workspace(Path(path).parent, partial(_accept, path, folder)) for path in paths])


def _accept(given: str, folder: Path) -> str:
    path = Path(given)
    if not path.is_absolute():
        raise InvalidParams(f"The attachment {given!r} must be an absolute path.")
    try:
        if path.is_dir():
            raise InvalidParams(f"{given} is a folder. Name it in the text, or attach the files in it.")
        data = _picture(path)
        return given if data is None else str(_kept(path, data, folder))
    except FileNotFoundError as error:
        raise InvalidParams(f"{given} is not there any more. Take it out, or attach it again.") from error
    except OSError as error:
        raise InvalidParams(f"{given} cannot be attached: {error.strerror}. Check it, or take it out.") from error


def _picture(path: Path) -> bytes | None:
    """The bytes of a picture; None for any other file."""
    with open_regular(path) as file:
        head = file.read(16)
        if not media_type(head):
            return None
        data = head + file.read(_LARGEST_PICTURE + 1)
    if len(data) > _LARGEST_PICTURE:
        size = path.stat().st_size / (1024 * 1024)
        raise InvalidParams(f"The picture {path.name} has {size:.1f} MB; at most 10 MB. Make it smaller first.")
    return data


def _kept(path: Path, data: bytes, folder: Path) -> Path:
    """Where the copy is: a folder named by the content, a file named as the person knows it."""
    if path.is_relative_to(folder):
        return path
    kept = folder / hashlib.sha256(data).hexdigest()[:32] / path.name
    if kept.exists():
        os.utime(kept.parent)  # young again: it is not swept before the message that names it is stored
    else:
        make_folder(kept.parent)
        write_atomically(kept, data)
    return kept
