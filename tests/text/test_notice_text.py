"""Each notice has its sentence, and those that a replay needs are read back from records of before."""

import msgspec
import pytest

from errand.engine.record.old_records import current_node
from errand.protocol.blocks import NoticeBlock, NoticeKind
from errand.protocol.conversations import Node
from errand.protocol.notices import (
    AnsweredBeside,
    ContextNearlyFull,
    ContextTruncated,
    EndedProcess,
    EndNotSaved,
    EngineEnded,
    LimitReached,
    LimitShare,
    LimitsNear,
    ModelChanged,
    NoAnswer,
    NoSummary,
    NoticeData,
    PromptRemark,
    Remark,
    RepeatedCall,
    ReplyCut,
    RoundEnded,
    TaskCompleted,
    TaskFailed,
    TaskStopped,
    TaskStuck,
    TemperatureLeftOut,
    ThinkingNotSent,
    ToolsAsText,
    UnknownPrice,
)
from errand.text.notice_text import data_text, notice_text
from tests.support.records import node

PROCESSES = (
    EndedProcess(pid=7, started=1.0, name="sleep 60"),
    EndedProcess(pid=8, started=2.0, name="top", still_there=True),
)
SHARES = (
    LimitShare(limit="turns", used=8, value=10),
    LimitShare(limit="minutes", used=24, value=30),
    LimitShare(limit="money", used=1.6, value=2),
    LimitShare(limit="tokens", used=800, value=1000),
    LimitShare(limit="day_money", used=4, value=5),
    LimitShare(limit="day_tokens", used=120_000, value=140_000),
)

# Those that the old sentences are read back as.
KNOWN: dict[str, tuple[NoticeKind, NoticeData]] = {
    "The task is over.": ("info", TaskCompleted()),
    "Stopped by me.": ("stopped", TaskStopped(by="me")),
    "It has used its one turn.": ("limit", LimitReached(limit="turns", value=1)),
    "It has used its 5 turns.": ("limit", LimitReached(limit="turns", value=5)),
    "It has worked for 30 minutes.": ("limit", LimitReached(limit="minutes", value=30)),
    "It has spent its $1.50.": ("limit", LimitReached(limit="money", value=1.5)),
    "It has used its 12,000 tokens.": ("limit", LimitReached(limit="tokens", value=12_000)),
    "All tasks together have spent the $5.00 of today.": ("limit", LimitReached(limit="day_money", value=5)),
    "All tasks together have used the 100 tokens of today.": ("limit", LimitReached(limit="day_tokens", value=100)),
    "It tried 10 times in a row to make a call that cannot be made: code {}": (
        "limit",
        TaskStuck(count=10, call="code {}"),
    ),
    "The model refused the key.": ("error", TaskFailed(text="The model refused the key.", cause="reply")),
    "No summary was made: The model gave no text.": (
        "error",
        TaskFailed(text="The model gave no text.", cause="summary"),
    ),
    "The task failed: a bug": ("error", TaskFailed(text="a bug", cause="internal")),
    "The end of the task could not be saved. The disk is full.": ("error", EndNotSaved(text="The disk is full.")),
    "The engine ended; the task can be resumed.": ("interrupted", EngineEnded()),
    "The engine ended; the task goes on by itself when its limit has passed.": (
        "interrupted",
        EngineEnded(resumes=True),
    ),
    "Used: 8 of 10 turns and 24 of 30 minutes and $1.60 of $2.00 and 800 of 1,000 tokens and $4.00 of the $5.00 of "
    "today and 120,000 of the 140,000 tokens of today; at the limit it will stop.": (
        "warning",
        LimitsNear(shares=SHARES),
    ),
    "Used: 8 of 10 turns; at the limit it will ask you.": ("warning", LimitsNear(shares=SHARES[:1], asks=True)),
    'The same call was made three times in a row: shell {"command":"ls"}': (
        "warning",
        RepeatedCall(count=3, call='shell {"command":"ls"}'),
    ),
    "About 70 % of what the model can read is used; soon the older part will be summarised.": (
        "warning",
        ContextNearlyFull(share=0.7),
    ),
    "The oldest entry is left out of what the model reads, because it is full.": (
        "warning",
        ContextTruncated(entries=1),
    ),
    "The middle of the newest result is left out of what the model reads, because it is full.": (
        "warning",
        ContextTruncated(shortens_result=True),
    ),
    "The oldest 2 entries and the middle of the newest result are left out of what the model reads, because it is "
    "full.": ("warning", ContextTruncated(entries=2, shortens_result=True)),
    "The older part could not be summarised: It is not much shorter.": (
        "warning",
        NoSummary(reason="It is not much shorter."),
    ),
    "The reply was cut because it repeated itself. What came before that is kept, and none of its tool calls was run. "
    "If this happens again, choose another model or check its server.": (
        "warning",
        ReplyCut(reason="repeated itself"),
    ),
    "The price of a/b is not known, so the budget cannot be kept: only turns and minutes limit this task.": (
        "model",
        UnknownPrice(model="a/b"),
    ),
    "a/AGENTS.md is not read: it is no text.": ("model", Remark(text="a/AGENTS.md is not read: it is no text.")),
}

SENTENCES: tuple[tuple[NoticeData, str], ...] = (
    (TaskCompleted(), "The task ended."),
    (
        TaskCompleted(ended=PROCESSES, unread=("and this",)),
        "The task ended. Stopped sleep 60 (pid 7), top (pid 8), still running. Not delivered: “and this”.",
    ),
    (TaskStopped(by="me"), "Stopped by me."),
    (TaskStopped(by=""), "Stopped."),
    (
        TaskStopped(by="me", ended=(EndedProcess(pid=9, started=1.0, name="bash -c make test"),)),
        "Stopped by me. Stopped make test (pid 9).",
    ),
    (
        TaskStopped(by="me", unread=("rather that", "and this")),
        "Stopped by me. Not delivered: “rather that”, “and this”.",
    ),
    (LimitReached(limit="turns", value=1), "The limit of 1 turn is reached."),
    (LimitReached(limit="turns", value=5), "The limit of 5 turns is reached."),
    (LimitReached(limit="minutes", value=30), "The limit of 30 minutes is reached."),
    (LimitReached(limit="money", value=1.5), "The budget of $1.50 is used up."),
    (LimitReached(limit="tokens", value=12_000), "The limit of 12,000 tokens is reached."),
    (LimitReached(limit="day_money", value=5), "The daily budget of $5.00 is used up."),
    (LimitReached(limit="day_tokens", value=100), "The daily limit of 100 tokens is reached."),
    (
        LimitReached(limit="turns", value=5, ended=PROCESSES[:1]),
        "The limit of 5 turns is reached. Stopped sleep 60 (pid 7).",
    ),
    (TaskStuck(count=10, call="code {}"), "The agent made the same call 10 times with the same result: code {}"),
    (
        TaskStuck(count=10, call="shel {}", others=("cod {}",)),
        "The agent made the same calls 10 times with the same results: shel {}; cod {}",
    ),
    (TaskFailed(text="The model refused the key.", cause="reply"), "The model refused the key."),
    (TaskFailed(text="no key", cause="reply", ended=PROCESSES[:1]), "no key Stopped sleep 60 (pid 7)."),
    (TaskFailed(text="The model gave no text.", cause="summary"), "No summary was made: The model gave no text."),
    (TaskFailed(text="a bug", cause="internal"), "The task failed: a bug"),
    (EndNotSaved(text="The disk is full."), "The end of the task could not be saved. The disk is full."),
    (EngineEnded(), "The engine ended during this task."),
    (
        EngineEnded(resumes=True),
        "The engine ended. The task resumes by itself when the rate limit has passed.",
    ),
    (EngineEnded(ended=PROCESSES[:1]), "The engine ended during this task. Stopped sleep 60 (pid 7)."),
    (
        LimitsNear(shares=SHARES),
        "Used 8 of 10 turns, 24 of 30 minutes, $1.60 of $2.00, 800 of 1,000 tokens, $4.00 of today's $5.00, "
        "120,000 of today's 140,000 tokens. The task stops at the limit.",
    ),
    (LimitsNear(shares=SHARES[:1], asks=True), "Used 8 of 10 turns. The task asks you at the limit."),
    (
        RepeatedCall(count=3, call='shell {"command":"ls"}'),
        'The same call was made 3 times with the same result: shell {"command":"ls"}',
    ),
    (
        RepeatedCall(count=3, call="shell {}", others=("code {}",)),
        "The same calls were made 3 times with the same results: shell {}; code {}",
    ),
    (
        ContextNearlyFull(share=0.7),
        "About 70 % of the context window is used. Older messages will soon be summarised.",
    ),
    (ContextTruncated(entries=1), "The context window is full: the oldest entry was left out."),
    (
        ContextTruncated(shortens_result=True),
        "The context window is full: the middle of the newest result was left out.",
    ),
    (
        ContextTruncated(entries=2, shortens_result=True),
        "The context window is full: the 2 oldest entries were left out. The newest result was shortened.",
    ),
    (
        NoSummary(reason="It is not much shorter."),
        "Older messages could not be summarised: It is not much shorter.",
    ),
    (
        ReplyCut(reason="repeated itself"),
        "The reply was cut off because it repeated itself. What came before is kept, and none of its tool calls ran. "
        "If this happens again, choose another model or check its server.",
    ),
    (NoAnswer(why="empty"), "The model sent no answer: its last reply has no text and no tool call."),
    (
        NoAnswer(why="unfinished"),
        "The model sent no answer: its last reply ended before the tool call or text that was to follow.",
    ),
    (
        NoAnswer(why="call_as_text"),
        "The model sent no answer: its last reply is a tool call written as text, which does not run.",
    ),
    (
        ModelChanged(from_model="a/b", to_model="c/d"),
        "a/b did not answer in the last minute, so c/d was used.",
    ),
    (
        ModelChanged(from_model="a/b", to_model="c/d", reason="It is down."),
        "a/b did not answer, so c/d was used. It is down.",
    ),
    (
        ToolsAsText(model="a/b"),
        "a/b does not support tool calls. Tools are described in its prompt and it writes calls as text, which is "
        "less reliable. For long tasks, choose a model with tool calls.",
    ),
    (
        TemperatureLeftOut(model="a/b", temperature=0.2),
        "The temperature 0.2 was not sent: a/b does not support it.",
    ),
    (
        TemperatureLeftOut(model="a/b", temperature=1.0, thinks=True),
        "The temperature 1 was not sent: thinking models use their own.",
    ),
    (
        ThinkingNotSent(model="a/b", level="high", why="no_thinking"),
        "The thinking level “high” was not sent: a/b does not support thinking.",
    ),
    (
        ThinkingNotSent(model="a/b", level="low", why="no_way"),
        "The thinking level “low” was not sent: how a/b takes it is unknown. Its default applies.",
    ),
    (ThinkingNotSent(model="a/b", level="off", why="always"), "Thinking cannot be switched off for a/b."),
    (
        UnknownPrice(model="a/b"),
        "The price of a/b is unknown, so the budget has no effect. Only turns and minutes limit this task.",
    ),
    (
        RoundEnded(reason="limit", next_agent="Ann", replies=1),
        "The limit of 1 reply in a row is reached. Send a message to continue.",
    ),
    (
        RoundEnded(reason="limit", next_agent="Ann", replies=8),
        "The limit of 8 replies in a row is reached. Send a message to continue.",
    ),
    (
        RoundEnded(reason="failed", next_agent="Ann", speaker="Bob"),
        "The round ended: Bob failed before it was Ann's turn. Mention @Ann to continue.",
    ),
    (
        RoundEnded(reason="budget", next_agent="Ann"),
        "The round ended: its budget was used up before it was Ann's turn. Send a message to continue.",
    ),
    (
        RoundEnded(reason="not_started", next_agent="Ann", error="The engine is ending."),
        "The round ended: Ann could not start. The engine is ending.",
    ),
    (
        AnsweredBeside(agent="Ann", other="Ann 2"),
        "Ann was busy or had moved on, so Ann 2 answers here on its own branch. Both replies are kept.",
    ),
    (Remark(text="a/AGENTS.md is not read."), "a/AGENTS.md is not read."),
    (
        PromptRemark(code="too_long", path="/a", count=2_768, most=32_768),
        "Only the first 2,768 bytes of /a are used. At most 32,768 bytes are used in total.",
    ),
    (PromptRemark(code="no_text", path="/a"), "/a was skipped: it is not a text file."),
    (
        PromptRemark(code="unreadable", path="/a"),
        "/a was skipped: it cannot be read, is not a file, or is a link that leaves the project.",
    ),
    (
        PromptRemark(code="no_front_matter", path="/a"),
        "/a was skipped: a skill starts with front matter with a name and a description.",
    ),
    (
        PromptRemark(code="no_front_matter", path="/a", count=2),
        "/a and 2 more were skipped: a skill starts with front matter with a name and a description.",
    ),
    (
        PromptRemark(code="too_many_skills", path="/a", most=64),
        "The agent is told of 64 skills at most: /a and those after it were left out.",
    ),
    (
        PromptRemark(code="too_many_facts", path="", count=2, most=4_000),
        "The 2 oldest pinned facts were left out: the limit is 4,000 tokens in total. Remove or shorten some.",
    ),
)


@pytest.mark.parametrize(("data", "text"), SENTENCES)
def test_a_notice_has_its_sentence(data: NoticeData, text: str) -> None:
    assert data_text(data) == text


@pytest.mark.parametrize(("text", "kind", "data"), [(text, kind, data) for text, (kind, data) in KNOWN.items()])
def test_a_sentence_of_before_is_read_as_its_notice(text: str, kind: NoticeKind, data: NoticeData) -> None:
    (block,) = current_node(_noted(NoticeBlock(kind=kind, text=text))).blocks
    assert block == NoticeBlock(kind=kind, data=data)


@pytest.mark.parametrize("kind", ["stopped", "limit", "error"])
def test_what_was_ended_is_dropped_from_a_sentence_of_before(kind: NoticeKind) -> None:
    notice = NoticeBlock(kind=kind, text="Stopped by me. Ended: sleep 60 (pid 7). Not read any more: “a\nb”.")
    (block,) = current_node(_noted(notice)).blocks
    assert isinstance(block, NoticeBlock) and notice_text(block) == "Stopped by me."


def _noted(block: NoticeBlock) -> Node:
    return msgspec.structs.replace(node("n1"), role="system", blocks=(block,))
