"""Converts between stored nodes and model messages."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import assert_never

import msgspec

from errand.engine.agent.prompt.texts import prompt_text
from errand.engine.core.messages import (
    AssistantContent,
    AssistantMessage,
    ContextText,
    Image,
    Message,
    ModelMessage,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
    in_tags,
    text_of,
)
from errand.engine.models.base import PartialReply
from errand.engine.tools.call_display import display_of
from errand.engine.tools.results import ToolResult
from errand.protocol.base import JsonObject, JsonValue
from errand.protocol.blocks import (
    Block,
    CallRole,
    EnvironmentBlock,
    FileBlock,
    ImageBlock,
    NoticeBlock,
    RecallBlock,
    RecalledEntry,
    SummaryBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from errand.protocol.conversations import Node
from errand.protocol.tasks.task import AgentPlan, PlannedCall
from errand.text.notice_text import recalled_head

UNKNOWN_OUTCOME = "The engine stopped while this call was under way; whether it took effect is not known. Check first."
NOT_RUN = "This call was not run: the reply was cut before its end."
# Details longer than this many characters are checked for duplication in the text.
_LONG = 1_000
_MAX_REASONING_LENGTH = 100_000


def messages_of(nodes: Iterable[Node]) -> tuple[ModelMessage, ...]:
    """Return a branch as model messages, without notices and failed replies; calls without a result get one.

    Strict providers refuse a call without a result, which a crash or a stop can leave behind.
    """
    messages: list[ModelMessage] = []
    missing = UNKNOWN_OUTCOME
    for node in nodes:
        message = message_of(node)
        if message is None:
            if (recalled := recall_of(node)) is not None and recalled.entries:
                _add_recalled(messages, recalled)
            continue
        if message.role != "tool_result":
            messages.extend(_missing_results(messages, missing))
        messages.append(message)
        if message.role == "assistant":
            missing = NOT_RUN if node.status == "cut" else UNKNOWN_OUTCOME
    messages.extend(_missing_results(messages, missing))
    return tuple(messages)


def message_of(node: Node) -> ModelMessage | None:
    """Return a node as a model message; None if models do not read it."""
    if node.role == "user":
        return user_message(node.blocks)
    if node.role == "tool_result":
        return _result_message(node)
    if node.role == "assistant" and node.status != "failed":
        content = tuple(_assistant_content(node.blocks))
        calls = any(isinstance(block, ToolCall) for block in content)
        reply = AssistantMessage(content, "tool_use" if calls else "stop", model=node.model)
        return reply if content else None
    return None


def recall_of(node: Node) -> RecallBlock | None:
    """Return the node's block of recalled entries, if any."""
    return next((block for block in node.blocks if isinstance(block, RecallBlock)), None)


def with_recalled(message: UserMessage | ToolResultMessage, recall: RecallBlock) -> UserMessage | ToolResultMessage:
    """Return the message, or the result with a person's answer, with what was recalled for it, before the words."""
    entries = "\n\n".join(map(_quoted_entry, recall.entries))
    end = "\n\n" if isinstance(message, ToolResultMessage) else ""  # the texts of a result are joined as they are
    recalled = ContextText(f"{prompt_text('recalled')}\n\n{in_tags(entries, 'recalled')}{end}", "memory")
    return replace(message, content=(*_context(message), recalled, *_own_content(message)))


def _quoted_entry(entry: RecalledEntry) -> str:
    """Return an entry as a quotation: with who said it when, and each line marked."""
    lines = "\n".join(f"> {line}" for line in entry.text.splitlines())
    source = "Quoted from the output of a tool: " if entry.role == "tool" else ""
    return f"{source}{recalled_head(entry)}\n{lines}"


def _context(message: UserMessage | ToolResultMessage) -> tuple[UserContent, ...]:
    return tuple(block for block in message.content if isinstance(block, ContextText))


def _own_content(message: UserMessage | ToolResultMessage) -> tuple[UserContent, ...]:
    return tuple(block for block in message.content if not isinstance(block, ContextText))


def _add_recalled(messages: list[ModelMessage], recall: RecallBlock) -> None:
    """Add it to the message that it was recalled for: some providers refuse two messages of a user in a row."""
    if messages and not isinstance(message := messages[-1], AssistantMessage):
        messages[-1] = with_recalled(message, recall)


def _missing_results(messages: list[ModelMessage], text: str) -> list[ToolResultMessage]:
    """Results for the unanswered calls of the last reply; `text` gives the reason."""
    answered: set[str] = set()
    for message in reversed(messages):
        if isinstance(message, ToolResultMessage):
            answered.add(message.tool_call_id)
            continue
        if isinstance(message, AssistantMessage):
            return [
                ToolResultMessage(call.id, call.name, (Text(text),), is_error=True)
                for call in message.tool_calls
                if call.id not in answered
            ]
        break
    return []


def user_message(blocks: Sequence[Block]) -> UserMessage:
    """Return the blocks of a user, or of the engine in the user's place, as a model message: the environment first."""
    first = next((block for block in blocks if isinstance(block, TextBlock)), None)
    environments = (block for block in blocks if isinstance(block, EnvironmentBlock))
    context = (ContextText(block.text, "environment", block.brief) for block in environments)
    content = (*context, *_user_content(blocks))
    return UserMessage(content, kind=first.engine_message if first is not None else None)


def _user_content(blocks: Iterable[Block]) -> Iterable[UserContent]:
    for block in blocks:
        if isinstance(block, TextBlock):
            yield _text_of(block)
        elif isinstance(block, ImageBlock):
            yield image_of(block)
        elif isinstance(block, FileBlock):
            size = f", {block.size:,} bytes" if block.size else ""
            yield Text(f"[Attached: `{block.path}`{size}]")


def _assistant_content(blocks: Iterable[Block]) -> Iterable[AssistantContent]:
    for block in blocks:
        match block:
            case TextBlock():
                yield _text_of(block)
            case ThinkingBlock():
                yield Thinking(block.text, block.signature)
            case ToolCallBlock():
                yield ToolCall(block.call_id, block.tool, block.arguments, block.invalid)
            case ImageBlock() | FileBlock() | ToolResultBlock() | NoticeBlock() | SummaryBlock():
                pass
            case RecallBlock() | EnvironmentBlock():
                pass
            case _:
                assert_never(block)


def _text_of(block: TextBlock) -> Text:
    return Text(prompt_text("forgotten") if block.forgotten else block.text)


def _result_message(node: Node) -> ToolResultMessage | None:
    block = next((block for block in node.blocks if isinstance(block, ToolResultBlock)), None)
    if block is None:
        return None
    return ToolResultMessage(
        block.call_id, block.tool, result_of(block).content, block.is_error, block.details, marks=block.marks
    )


def result_of(block: ToolResultBlock) -> ToolResult:
    """Return the tool result that a stored block was made from."""
    images = map(image_of, block.images)
    text = prompt_text("forgotten") if "forgotten" in block.marks else block.text
    return ToolResult((Text(text), *images), block.details, block.summary, block.is_error, marks=block.marks)


def image_of(block: ImageBlock) -> Image:
    return Image(block.media_type, block.data, block.path, block.name)


def _image_block(image: Image) -> ImageBlock:
    return ImageBlock(media_type=image.media_type, data=image.data, path=image.path, name=image.name)


def blocks_of(message: Message, execution_id: str = "", summary: str = "") -> tuple[Block, ...]:
    """Return a message as the blocks of a node; `execution_id` and `summary` belong to a tool result."""
    if isinstance(message, ToolResultMessage):
        images = tuple(_image_block(block) for block in message.content if isinstance(block, Image))
        return (
            ToolResultBlock(
                call_id=message.tool_call_id,
                tool=message.tool_name,
                text=text_of(message),
                is_error=message.is_error,
                summary=summary,
                details=_without_repeated(text_of(message), message.details),
                execution_id=execution_id,
                images=images,
                marks=message.marks,
            ),
        )
    blocks = tuple(_block_of(block) for block in message.content if not isinstance(block, ContextText))
    if not isinstance(message, UserMessage) or message.kind is None:
        return blocks
    return tuple(
        msgspec.structs.replace(block, engine_message=message.kind) if isinstance(block, TextBlock) else block
        for block in blocks
    )


def blocks_of_reply(reply: PartialReply) -> tuple[Block, ...]:
    """Return the blocks of a partial reply."""
    return tuple(_block_of(block) for block in reply.content)


def _without_repeated(text: str, details: JsonObject | None) -> JsonObject | None:
    """Drop details that the text repeats: they would double the node, and the execution record has them."""
    if details is None:
        return None
    return {
        name: value
        for name, value in details.items()
        if not (isinstance(value, str) and len(value) > _LONG and value.rstrip("\n") in text)
    }


def _block_of(block: AssistantContent | UserContent) -> Block:
    match block:
        case Text():
            return TextBlock(text=block.text)
        case Thinking():
            return ThinkingBlock(text=block.text, signature=block.signature)
        case Image():
            return _image_block(block)
        case ToolCall():
            return ToolCallBlock(call_id=block.id, tool=block.name, arguments=block.arguments, invalid=block.invalid)
        case _:
            assert_never(block)


def plan_of(task_id: str, turn: int, message: AssistantMessage) -> AgentPlan:
    """Return a reply as an `AgentPlan`: the thinking (or else the text) is the reasoning, control calls become
    fields.
    """
    thinking = "\n".join(block.text for block in message.content if isinstance(block, Thinking))
    first: dict[CallRole, JsonValue] = {}
    for call in message.tool_calls:
        display = display_of(call.name, call.arguments)
        first.setdefault(display.role, call.arguments.get(display.content))
    question = first.get("question")
    return AgentPlan(
        task_id=task_id,
        turn=turn,
        reasoning=(thinking or message.text)[:_MAX_REASONING_LENGTH],
        tool_calls=tuple(PlannedCall(tool_name=call.name, parameters=call.arguments) for call in message.tool_calls),
        question=question if isinstance(question, str) else None,
        is_complete="completion" in first,
    )
