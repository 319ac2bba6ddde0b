"""The sentences of notices as records of the first version have them, which `engine/record/old_records.py` reads."""

import signal
from collections.abc import Sequence
from typing import assert_never

from errand.protocol.blocks import NoticeBlock
from errand.protocol.notices import (
    AnsweredBeside,
    ContextNearlyFull,
    ContextNotice,
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
    ReplyNotice,
    RoundEnded,
    SmallWindow,
    SummaryForgotten,
    TaskCompleted,
    TaskEndNotice,
    TaskFailed,
    TaskStopped,
    TaskStuck,
    TemperatureLeftOut,
    ThinkingNotSent,
    ToolsAsText,
    UnknownPrice,
)
from errand.protocol.tasks.groups import LimitKind

_COUNTS = {3: "three"}


def notice_text(notice: NoticeBlock) -> str:
    """A notice as text. One from before notices had data has a `text`."""
    return notice.text if notice.data is None else data_text(notice.data)


def data_text(data: NoticeData) -> str:
    match data:
        case (TaskCompleted() | TaskStopped() | LimitReached() | TaskStuck() | TaskFailed()) | (
            EngineEnded() | EndNotSaved()
        ):
            return " ".join(filter(None, (_end_text(data), leftovers_text(data))))
        case LimitsNear(shares=shares, asks=asks):
            used = " and ".join(map(share_text, shares))
            return f"Used: {used}; at the limit {'it will ask you' if asks else 'it will stop'}."
        case RepeatedCall(count=count, call=call, others=()):
            return f"The same call was made {_COUNTS.get(count, count)} times in a row: {call}"
        case RepeatedCall(count=count, call=call, others=others):
            calls = "; then ".join((call, *others))
            return f"The same calls were made {_COUNTS.get(count, count)} times in turn: {calls}"
        case ContextNearlyFull() | ContextTruncated() | NoSummary():
            return _context_text(data)
        case (
            ReplyCut()
            | NoAnswer()
            | ModelChanged()
            | ToolsAsText()
            | SmallWindow()
            | TemperatureLeftOut()
            | ThinkingNotSent()
            | UnknownPrice()
        ):
            return _reply_text(data)
        case RoundEnded():
            return _round_text(data)
        case AnsweredBeside(agent=agent, other=other):
            return (
                f"{agent} was at work or had moved on when this was asked: {other} answers here, on a branch of its "
                "own. Both replies are kept."
            )
        case PromptRemark():
            return prompt_remark_text(data)
        case Remark(text=text):
            return text
        case SummaryForgotten():
            return "The summary that was here is removed, because you had a text forgotten that it was made from."
        case _:
            assert_never(data)


def _end_text(data: TaskEndNotice) -> str:
    match data:
        case TaskCompleted():
            return "The task is over."
        case TaskStopped(by=by):
            return f"Stopped by {by}." if by else "Stopped."
        case LimitReached(limit=limit, value=value):
            return limit_text(limit, value)
        case TaskStuck(count=count, call=call, others=()):
            return f"It tried {count} times in a row to make a call that cannot be made: {call}"
        case TaskStuck(count=count, call=call, others=others):
            calls = "; then ".join((call, *others))
            return f"It tried {count} times in turn to make calls that cannot be made: {calls}"
        case TaskFailed(text=text, cause="internal"):
            return f"The task failed: {text}"
        case TaskFailed(text=text, cause="summary"):
            return f"No summary was made: {text}"
        case TaskFailed(text=text):
            return text
        case EndNotSaved(text=text):
            return f"The end of the task could not be saved. {text}"
        case EngineEnded(resumes=True):
            return "The engine ended; the task goes on by itself when its limit has passed."
        case EngineEnded():
            return "The engine ended; the task can be resumed."
        case _:
            assert_never(data)


def leftovers_text(data: TaskEndNotice) -> str:
    """The processes ended with the task and its unread messages; empty if there are none."""
    match data:
        case EndNotSaved():
            return ""
        case EngineEnded(ended=ended):
            return ended_text(ended)
        case _:
            unread = f"Not read any more: {', '.join(f'“{text}”' for text in data.unread)}." if data.unread else ""
            return " ".join(filter(None, (ended_text(data.ended), unread)))


def ended_text(ended: Sequence[EndedProcess]) -> str:
    """The ended processes, as one sentence; empty if there are none."""
    return f"Ended: {', '.join(map(process_text, ended))}." if ended else ""


def signal_text(number: int) -> str:
    """`SIGSEGV (11)`."""
    try:
        return f"{signal.Signals(number).name} ({number})"
    except ValueError:  # a real-time signal, or one of another system
        return f"signal {number}"


def exit_text(code: int) -> str:
    """Return how a command ended by itself: `exit code 3`, `killed by SIGSEGV (11)` for a negative code."""
    return f"killed by {signal_text(-code)}" if code < 0 else f"exit code {code}"


def short_exit_text(code: int) -> str:
    """`exit 3`, `killed by SIGSEGV (11)`."""
    return exit_text(code) if code < 0 else f"exit {code}"


def process_text(process: EndedProcess) -> str:
    """`sleep 60 (pid 1234)`."""
    left = ", still there" if process.still_there else ""
    return f"{process.name} (pid {process.pid}){left}"


def prompt_remark_text(remark: PromptRemark) -> str:
    path = remark.path
    match remark.code:
        case "too_long":
            return f"Only the first {remark.count:,} bytes of {path} are read: {remark.most:,} are read in all."
        case "no_text":
            return f"{path} is not read: it is no text."
        case "unreadable":
            return f"{path} is not read: it cannot be opened, is no file, or is a link that leads out of the project."
        case "no_front_matter":
            left_out = f"{path} and {remark.count} more are" if remark.count else f"{path} is"
            return f"{left_out} left out: a skill begins with a front matter that has a name and a description."
        case "too_many_skills":
            return f"Only {remark.most} skills are named to the agent: {path} and what comes after it is left out."
        case "too_many_facts":
            oldest = "oldest pinned fact is" if remark.count == 1 else f"{remark.count} oldest pinned facts are"
            return f"The {oldest} left out: all together may take {remark.most:,} tokens. Remove or shorten some."
        case "untrusted_skills":
            return ""  # later than these records
        case _:
            assert_never(remark.code)


def limit_text(limit: LimitKind, value: float) -> str:
    """Return the sentence that a limit is used up."""
    match limit:
        case "turns":
            return "It has used its one turn." if value == 1 else f"It has used its {value:.0f} turns."
        case "minutes":
            return f"It has worked for {value:.0f} minutes."
        case "money":
            return f"It has spent its ${value:.2f}."
        case "tokens":
            return f"It has used its {value:,.0f} tokens."
        case "day_money":
            return f"All tasks together have spent the ${value:.2f} of today."
        case "day_tokens":
            return f"All tasks together have used the {value:,.0f} tokens of today."
        case _:
            assert_never(limit)


def share_text(share: LimitShare) -> str:
    used, value = share.used, share.value
    match share.limit:
        case "turns" | "minutes":
            return f"{used:.0f} of {value:.0f} {share.limit}"
        case "money":
            return f"${used:.2f} of ${value:.2f}"
        case "tokens":
            return f"{used:,.0f} of {value:,.0f} tokens"
        case "day_money":
            return f"${used:.2f} of the ${value:.2f} of today"
        case "day_tokens":
            return f"{used:,.0f} of the {value:,.0f} tokens of today"
        case _:
            assert_never(share.limit)


def _context_text(data: ContextNotice) -> str:
    match data:
        case ContextNearlyFull(share=share):
            used = f"{share:.0%}".replace("%", " %")
            return f"About {used} of what the model can read is used; soon the older part will be summarised."
        case ContextTruncated():
            return _truncation_text(data)
        case NoSummary(reason=reason):
            return f"The older part could not be summarised: {reason}"
        case _:
            assert_never(data)


def _truncation_text(data: ContextTruncated) -> str:
    count = data.entries
    entries = ["the oldest entry" if count == 1 else f"the oldest {count} entries"] if count else []
    what = [*entries, *(["the middle of the newest result"] if data.shortens_result else [])]
    is_one = len(what) == 1 and count < 2
    text = f"{' and '.join(what)} {'is' if is_one else 'are'} left out of what the model reads, because it is full."
    return text[0].upper() + text[1:]


def _reply_text(data: ReplyNotice) -> str:
    match data:
        case ReplyCut(reason=reason):
            return (
                f"The reply was cut because it {reason}. What came before that is kept, and none of its tool calls was "
                "run. If this happens again, choose another model or check its server."
            )
        case NoAnswer():
            return ""  # later than these records
        case ModelChanged(from_model=first, to_model=second, reason=""):
            return f"{first} did not answer in the last minute, so {second} was asked."
        case ModelChanged(from_model=first, to_model=second, reason=reason):
            return f"{first} did not answer, so {second} was asked. {reason}"
        case ToolsAsText(model=model):
            return (
                f"{model} does not call tools by itself. It is told of them in its prompt and writes its calls as text "
                "instead, which is less reliable; for long work choose a model that calls tools."
            )
        case SmallWindow():
            return ""  # came later
        case TemperatureLeftOut(model=model, temperature=temperature, thinks=thinks):
            reason = "a model that thinks has its own" if thinks else f"{model} does not take it"
            return f"The temperature {temperature:g} is left out: {reason}."
        case ThinkingNotSent(model=model, level=level, why="no_thinking"):
            return f"The thinking level {level} is left out: {model} does not think."
        case ThinkingNotSent(model=model, why="always"):
            return f"{model} cannot be told not to think: it thinks as much as it does by itself."
        case ThinkingNotSent(model=model, level=level):
            return (
                f"The thinking level {level} is not sent, since how {model} is told is not known: it thinks as much as "
                "it does by itself."
            )
        case UnknownPrice(model=model):
            return (
                f"The price of {model} is not known, so the budget cannot be kept: only turns and minutes limit this "
                "task."
            )
        case _:
            assert_never(data)


def _round_text(data: RoundEnded) -> str:
    after = data.next_agent
    match data.reason:
        case "limit":
            replies = "1 reply" if data.replies == 1 else f"{data.replies} replies"
            return f"The limit of {replies} in a row is reached. Write something and they go on."
        case "failed":
            return (
                f"The round ends here: {data.speaker} failed, and {after} has not spoken. Name {after} with @ to go on."
            )
        case "budget":
            return (
                f"The round ends here: its budget is used up, and {after} has not spoken. "
                "Write something and they go on."
            )
        case "not_started":
            return f"The round ends here: {after} could not begin. {data.error}"
        case _:
            assert_never(data.reason)
