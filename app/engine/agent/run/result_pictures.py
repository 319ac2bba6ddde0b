"""Stores the pictures of tool results as files, so that nodes stay small; the window and models read them there."""

from dataclasses import replace

from app.engine.agent.history.attachments import Attachments
from app.engine.agent.loop.features import Feature
from app.engine.agent.loop.hooks import FinishedCall
from app.engine.core.cancel import CancelSignal
from app.engine.core.messages import Image, Text, UserContent
from app.engine.tools.base import ToolResult

_MOST = 20


class ResultPictures(Feature):
    def __init__(self, attachments: Attachments) -> None:
        self._attachments = attachments

    async def after_tool_call(self, finished: FinishedCall, cancel: CancelSignal) -> ToolResult:
        result = finished.result
        pictures = [block for block in result.content if isinstance(block, Image)]
        if not pictures:
            return result
        texts = [block for block in result.content if isinstance(block, Text)]
        kept: tuple[UserContent, ...] = await self._attachments.keep(pictures[:_MOST])
        if len(pictures) > _MOST:
            texts.append(Text(f"\n[{len(pictures) - _MOST} more pictures are not shown: at most {_MOST} of one call.]"))
        remarks = [Text(f"\n{block.text}") for block in kept if isinstance(block, Text)]
        return replace(result, content=(*texts, *remarks, *(block for block in kept if isinstance(block, Image))))
