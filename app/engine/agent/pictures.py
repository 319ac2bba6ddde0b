"""Pictures on their way to a model: read from their files for one call, so that none stays in memory or in a record."""

import asyncio
import base64
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from app.engine.agent.reply import known_to_models
from app.engine.messages import Image, Message, ModelMessage, Text, UserContent, UserMessage
from app.regular_file import read_regular

_LARGEST = 10 * 1024 * 1024  # as much as is attached at most


async def with_pictures(messages: Sequence[Message]) -> Sequence[ModelMessage]:
    """What a model knows of the messages, with the attached pictures in place; one that is gone is told as text."""
    known = await known_to_models(messages)
    if not any(_is_stored(block) for message in known for block in _said(message)):
        return known
    return await asyncio.to_thread(lambda: tuple(_filled(message) for message in known))


def _said(message: ModelMessage) -> tuple[UserContent, ...]:
    return message.content if isinstance(message, UserMessage) else ()


def _is_stored(block: UserContent) -> bool:
    return isinstance(block, Image) and not block.data


def _filled(message: ModelMessage) -> ModelMessage:
    if not isinstance(message, UserMessage):
        return message
    return replace(message, content=tuple(_read(block) for block in message.content))


def _read(block: UserContent) -> UserContent:
    if isinstance(block, Text) or block.data:
        return block
    try:
        data = read_regular(Path(block.path), _LARGEST)
    except OSError:
        return Text(f"[A picture was here, {Path(block.path).name}; its file is gone.]")
    return Image(block.media_type, base64.b64encode(data).decode())
