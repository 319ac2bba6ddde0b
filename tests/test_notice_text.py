"""Each notice has its sentence, and those that a replay needs are read back from records of before."""

import msgspec
import pytest

from errand.engine.record.old_records import current_node
from errand.notice_text import data_text, notice_text
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

OTHERS: dict[str, NoticeData] = {
    "The task is over. Ended: sleep 60 (pid 7), top (pid 8), still there. Not read any more: “and this”.": (
        TaskCompleted(ended=PROCESSES, unread=("and this",))
    ),
    "Stopped by me. Not read any more: “rather that”, “and this”.": (
        TaskStopped(by="me", unread=("rather that", "and this"))
    ),
    "Stopped.": TaskStopped(by=""),
    "It has used its 5 turns. Ended: sleep 60 (pid 7).": LimitReached(limit="turns", value=5, ended=PROCESSES[:1]),
    "no key Ended: sleep 60 (pid 7).": TaskFailed(text="no key", cause="reply", ended=PROCESSES[:1]),
    "The engine ended; the task can be resumed. Ended: sleep 60 (pid 7).": EngineEnded(ended=PROCESSES[:1]),
    "a/b did not answer in the last minute, so c/d was asked.": ModelChanged(from_model="a/b", to_model="c/d"),
    "a/b did not answer, so c/d was asked. It is down.": (
        ModelChanged(from_model="a/b", to_model="c/d", reason="It is down.")
    ),
    "a/b does not call tools by itself. It is told of them in its prompt and writes its calls as text instead, which "
    "is less reliable; for long work choose a model that calls tools.": ToolsAsText(model="a/b"),
    "The temperature 0.2 is left out: a/b does not take it.": TemperatureLeftOut(model="a/b", temperature=0.2),
    "The temperature 1 is left out: a model that thinks has its own.": (
        TemperatureLeftOut(model="a/b", temperature=1.0, thinks=True)
    ),
    "The thinking level high is left out: a/b does not think.": (
        ThinkingNotSent(model="a/b", level="high", why="no_thinking")
    ),
    "The thinking level low is not sent, since how a/b is told is not known: it thinks as much as it does by itself.": (
        ThinkingNotSent(model="a/b", level="low", why="no_way")
    ),
    "a/b cannot be told not to think: it thinks as much as it does by itself.": (
        ThinkingNotSent(model="a/b", level="off", why="always")
    ),
    "The limit of 1 reply in a row is reached. Write something and they go on.": (
        RoundEnded(reason="limit", next_agent="Ann", replies=1)
    ),
    "The limit of 8 replies in a row is reached. Write something and they go on.": (
        RoundEnded(reason="limit", next_agent="Ann", replies=8)
    ),
    "The round ends here: Bob failed, and Ann has not spoken. Name Ann with @ to go on.": (
        RoundEnded(reason="failed", next_agent="Ann", speaker="Bob")
    ),
    "The round ends here: its budget is used up, and Ann has not spoken. Write something and they go on.": (
        RoundEnded(reason="budget", next_agent="Ann")
    ),
    "The round ends here: Ann could not begin. The engine is ending.": (
        RoundEnded(reason="not_started", next_agent="Ann", error="The engine is ending.")
    ),
    "Ann was at work or had moved on when this was asked: Ann 2 answers here, on a branch of its own. Both replies are "
    "kept.": AnsweredBeside(agent="Ann", other="Ann 2"),
    "Only the first 2,768 bytes of /a are read: 32,768 are read in all.": (
        PromptRemark(code="too_long", path="/a", count=2_768, most=32_768)
    ),
    "/a is not read: it is no text.": PromptRemark(code="no_text", path="/a"),
    "/a is not read: it cannot be opened, is no file, or is a link that leads out of the project.": (
        PromptRemark(code="unreadable", path="/a")
    ),
    "/a is left out: a skill begins with a front matter that has a name and a description.": (
        PromptRemark(code="no_front_matter", path="/a")
    ),
    "/a and 2 more are left out: a skill begins with a front matter that has a name and a description.": (
        PromptRemark(code="no_front_matter", path="/a", count=2)
    ),
    "The same calls were made three times in turn: shell {}; then code {}": (
        RepeatedCall(count=3, call="shell {}", others=("code {}",))
    ),
    "It tried 10 times in turn to make calls that cannot be made: shel {}; then cod {}": (
        TaskStuck(count=10, call="shel {}", others=("cod {}",))
    ),
    "Only 64 skills are named to the agent: /a and what comes after it is left out.": (
        PromptRemark(code="too_many_skills", path="/a", most=64)
    ),
    "The 2 oldest pinned facts are left out: all together may take 4,000 tokens. Remove or shorten some.": (
        PromptRemark(code="too_many_facts", path="", count=2, most=4_000)
    ),
}


@pytest.mark.parametrize(("text", "data"), [(text, data) for text, (_, data) in KNOWN.items()] + list(OTHERS.items()))
def test_a_notice_has_its_sentence(text: str, data: NoticeData) -> None:
    assert data_text(data) == text


@pytest.mark.parametrize(("text", "kind", "data"), [(text, kind, data) for text, (kind, data) in KNOWN.items()])
def test_a_sentence_of_before_is_read_as_its_notice(text: str, kind: NoticeKind, data: NoticeData) -> None:
    (block,) = current_node(_noted(NoticeBlock(kind=kind, text=text))).blocks
    assert block == NoticeBlock(kind=kind, data=data)


@pytest.mark.parametrize("kind", ["stopped", "limit", "error"])
def test_what_was_ended_is_dropped_from_a_sentence_of_before(kind: NoticeKind) -> None:
    told = NoticeBlock(kind=kind, text="Stopped by me. Ended: sleep 60 (pid 7). Not read any more: “a\nb”.")
    (block,) = current_node(_noted(told)).blocks
    assert isinstance(block, NoticeBlock) and notice_text(block) == "Stopped by me."


def _noted(block: NoticeBlock) -> Node:
    return msgspec.structs.replace(node("n1"), role="system", blocks=(block,))
