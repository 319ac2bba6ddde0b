"""Attachments: validated and copied on input, converted to blocks; images are loaded for a single model call."""

import asyncio
import base64
import hashlib
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from errand.engine.agent.loop.features import Feature
from errand.engine.agent.loop.hooks import FinishedCall
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import InvalidParams
from errand.engine.core.messages import (
    AssistantContent,
    Image,
    Message,
    ModelMessage,
    Text,
    ToolResultMessage,
    UserContent,
    UserMessage,
    to_model_messages,
)
from errand.engine.core.workspace_threads import in_workspace
from errand.engine.models.message_cache import BeginningCache
from errand.engine.tools.results import ToolResult
from errand.protocol.blocks import Block, FileBlock, ImageBlock, TextBlock
from errand.system.regular_file import (
    NotRegularFile,
    make_folder,
    open_regular,
    read_beginning,
    read_regular,
    write_atomically,
)
from errand.text.redaction import redact

_MAX_ATTACHMENTS = 20
_MAX_PICTURE_BYTES = 10 * 1024 * 1024
_HEAD = 16
# Number of files whose size at the time of attaching is cached.
_MAX_CACHED_SIZES = 1000

_MAX_ATTACHMENT_BYTES = 10 * 1024 * 1024  # the largest attachment accepted

_MAX_PICTURES_PER_CALL = 20
# Looked through for stored images once.
_without_images: BeginningCache[None] = BeginningCache()
# At least this many and at most twice as many pictures of tool results are sent to a model.
_PICTURES_OF_RESULTS = 10
_EXTENSIONS = {"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp"}
_MAX_NAME_LENGTH = 60


def media_type(head: bytes) -> str:
    """Return the media type of an image that models accept, from its first bytes; empty for anything else."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return ""


class Attachments:
    """`folder` holds the image copies. Only these are read without a thread: other files may be on a slow disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sizes: dict[str, int] = {}

    async def store(self, given: tuple[str, ...]) -> tuple[str, ...]:
        """Return the paths to attach, without duplicates: images as copies in the folder, other files in place.

        Raises `InvalidParams` for unreadable files, for too many, and for an image that is too large.
        """
        paths = tuple(dict.fromkeys(given))
        if len(paths) > _MAX_ATTACHMENTS:
            raise InvalidParams(f"{len(paths)} files are attached; at most {_MAX_ATTACHMENTS} go with one message.")
        return tuple([await self._accept(path) for path in paths])

    async def _accept(self, given: str) -> str:
        path, size = await in_workspace(Path(given).parent, partial(_accept, given, self._folder))
        self._sizes.pop(path, None)
        self._sizes[path] = size
        if len(self._sizes) > _MAX_CACHED_SIZES:
            del self._sizes[next(iter(self._sizes))]
        return path

    async def keep(self, pictures: Sequence[Image]) -> tuple[UserContent, ...]:
        """Return the pictures of a tool as stored files; a text in the place of what is no picture or too large."""
        return await asyncio.to_thread(lambda: tuple(_keep(picture, self._folder) for picture in pictures))

    def blocks(self, text: str, attachments: tuple[str, ...]) -> tuple[Block, ...]:
        """Return the blocks of a user message. A file's size is 0 (unknown) if it was accepted long ago."""
        texts = (TextBlock(text=text),) if text.strip() else ()
        return (*texts, *(self._block(Path(path)) for path in attachments))

    def _block(self, path: Path) -> Block:
        kind = media_type(_head_of(path)) if path.parent.parent == self._folder else ""
        if kind:
            return ImageBlock(media_type=kind, path=str(path), name=path.name)
        return FileBlock(path=str(path), name=path.name, size=self._sizes.get(str(path), 0))


class ResultPictures(Feature):
    """Stores the pictures of tool results as files, so that nodes stay small."""

    def __init__(self, attachments: Attachments) -> None:
        self._attachments = attachments

    async def after_tool_call(self, finished: FinishedCall, cancel: CancelSignal) -> ToolResult:
        result = finished.result
        pictures = [block for block in result.content if isinstance(block, Image)]
        if not pictures:
            return result
        texts = [block for block in result.content if isinstance(block, Text)]
        stored: tuple[UserContent, ...] = await self._attachments.keep(pictures[:_MAX_PICTURES_PER_CALL])
        if (more := len(pictures) - _MAX_PICTURES_PER_CALL) > 0:
            texts.append(Text(f"\n[{more} more pictures are not shown: at most {_MAX_PICTURES_PER_CALL} of one call.]"))
        remarks = [Text(f"\n{block.text}") for block in stored if isinstance(block, Text)]
        return replace(result, content=(*texts, *remarks, *(block for block in stored if isinstance(block, Image))))


def _head_of(path: Path) -> bytes:
    """Return the first bytes of a file; empty if the file is gone."""
    try:
        return read_beginning(path, _HEAD)
    except (OSError, NotRegularFile):
        return b""


def _accept(given: str, folder: Path) -> tuple[str, int]:
    """Return the path to attach, and the size of the file in bytes."""
    path = Path(given)
    if not path.is_absolute():
        raise InvalidParams(f"The attachment {given!r} must be an absolute path.")
    try:
        if path.is_dir():
            raise InvalidParams(f"{given} is a folder. Name it in the text, or attach the files in it.")
        size, data = _read_attachment(path)
        return (given if data is None else str(_store_copy(path, data, folder))), size
    except FileNotFoundError as error:
        raise InvalidParams(f"{given} is not there any more. Take it out, or attach it again.") from error
    except OSError as error:
        raise InvalidParams(f"{given} cannot be attached: {error.strerror}. Check it, or take it out.") from error


def _read_attachment(path: Path) -> tuple[int, bytes | None]:
    """Return the size of a file, and its bytes if it is an image."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        head = file.read(_HEAD)
        if not media_type(head):
            return size, None
        data = head + file.read(_MAX_PICTURE_BYTES + 1)
    if len(data) > _MAX_PICTURE_BYTES:
        mb = size / (1024 * 1024)
        raise InvalidParams(f"The picture {path.name} has {mb:.1f} MB; at most 10 MB. Make it smaller first.")
    return size, data


def _store_copy(path: Path, data: bytes, folder: Path) -> Path:
    """Return the path of the copy: a folder named by the content hash, with the original file name."""
    if path.is_relative_to(folder):
        return path
    return _copied(data, folder, path.name)


def _keep(picture: Image, folder: Path) -> UserContent:
    """Return the picture as a stored file, whose extension tells its real type."""
    if picture.path:
        return picture
    named = f" ({picture.name})" if picture.name else ""
    if len(picture.data) > 2 * _MAX_PICTURE_BYTES:
        return Text(f"[A picture was here{named}; it has more than {_MAX_PICTURE_BYTES // 2**20} MB.]")
    try:
        data = base64.b64decode(picture.data, validate=True)
    except ValueError:
        data = b""
    kind = media_type(data[:_HEAD])
    if not kind:
        return Text(f"[A picture was here{named}; it could not be read.]")
    if len(data) > _MAX_PICTURE_BYTES:
        return Text(f"[A picture was here{named}; it has more than {_MAX_PICTURE_BYTES // 2**20} MB.]")
    clean_name = redact(picture.name)
    safe_name = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in clean_name)
    stem = safe_name.removesuffix(_EXTENSIONS[kind])[:_MAX_NAME_LENGTH].strip("-.") or "picture"
    name = clean_name[:_MAX_NAME_LENGTH] or "Picture"
    return Image(kind, "", str(_copied(data, folder, stem + _EXTENSIONS[kind])), name)


def _copied(data: bytes, folder: Path, name: str) -> Path:
    file = folder / hashlib.sha256(data).hexdigest()[:32] / name
    if file.exists():
        os.utime(file.parent)  # new mtime: cleanup must not remove it before its message is stored
    else:
        make_folder(file.parent)
        write_atomically(file, data)
    return file


async def load_images(messages: Sequence[Message]) -> Sequence[ModelMessage]:
    """Return the messages converted for a model, with stored images loaded; a missing image becomes a text.

    Of the images in tool results only the newest are sent, since models accept a limited number.
    """
    model_messages = await to_model_messages(messages)
    count, _ = _without_images.find(model_messages) or (0, None)
    if any(_is_stored(block) for message in model_messages[count:] for block in message.content):
        return await asyncio.to_thread(_with_images, model_messages)
    _without_images.put(model_messages, None, covered=count)
    return model_messages


def _is_stored(block: UserContent | AssistantContent) -> bool:
    return isinstance(block, Image) and not block.data


def _with_images(messages: Sequence[ModelMessage]) -> tuple[ModelMessage, ...]:
    in_results = sum(_pictures_in(message) for message in messages if isinstance(message, ToolResultMessage))
    # Many at once, so that the beginning of a request rarely changes: providers cache it.
    to_omit = max(0, (in_results - _PICTURES_OF_RESULTS - 1) // _PICTURES_OF_RESULTS * _PICTURES_OF_RESULTS)
    loaded: list[ModelMessage] = []
    for message in messages:
        match message:
            case ToolResultMessage() if to_omit and _pictures_in(message):
                to_omit = max(0, to_omit - _pictures_in(message))
                loaded.append(replace(message, content=tuple(map(_omitted, message.content))))
            case UserMessage() | ToolResultMessage() if any(map(_is_stored, message.content)):
                loaded.append(replace(message, content=tuple(map(_load_image, message.content))))
            case _:
                loaded.append(message)
    return tuple(loaded)


def _pictures_in(message: ToolResultMessage) -> int:
    return sum(isinstance(block, Image) for block in message.content)


def _omitted(block: UserContent) -> UserContent:
    return block if isinstance(block, Text) else Text("[An earlier picture was here; only the newest are shown.]")


def _load_image(block: UserContent) -> UserContent:
    if isinstance(block, Text) or block.data:
        return block
    try:
        data = read_regular(Path(block.path), _MAX_ATTACHMENT_BYTES)
    except OSError:
        return Text(f"[A picture was here, {Path(block.path).name}; its file is gone.]")
    return replace(block, data=base64.b64encode(data).decode(), path="")
