"""The sentences of notices, and of what was recalled, for clients and exports."""

import signal
from collections.abc import Sequence
from typing import assert_never

from errand.protocol.blocks import NoticeBlock, RecallBlock, RecalledEntry
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
    MissingAnswer,
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
from errand.text.redaction import redact
from errand.text.translation import decimal, marked, tr, trn

# Stands in the place of each text that a person had removed for good.
FORGOTTEN = marked("Forgotten by you")


def notice_text(notice: NoticeBlock) -> str:
    """Return a notice as text. One from before notices had data has a `text`."""
    return notice.text if notice.data is None else data_text(notice.data)


def recall_title(recall: RecallBlock) -> str:
    """Return what an agent was given from memory, or that there is more in folders that do not share."""
    if not recall.entries:
        return tr("Memory of another folder was not used")
    return trn(
        "Recalled {n} earlier entry from memory", "Recalled {n} earlier entries from memory", len(recall.entries)
    )


def recalled_text(entry: RecalledEntry) -> str:
    """Return the origin of an entry, and below it its text."""
    return f"{recalled_head(entry)}\n{entry.text}"


def recalled_head(entry: RecalledEntry) -> str:
    """Return who said an entry, when and where. Titles that were stored before may have keys."""
    title = redact(" ".join(entry.conversation_title.split())) or tr("Untitled conversation")
    at = f"{entry.at.astimezone():%Y-%m-%d %H:%M}"
    return tr("{speaker}, {time}, in “{title}”:").format(speaker=redact(entry.speaker), time=at, title=title)


def data_text(data: NoticeData) -> str:
    match data:
        case (TaskCompleted() | TaskStopped() | LimitReached() | TaskStuck() | TaskFailed()) | (
            EngineEnded() | EndNotSaved()
        ):
            return " ".join(filter(None, (_end_text(data), leftovers_text(data))))
        case LimitsNear(shares=shares, asks=asks):
            used = ", ".join(map(share_text, shares))
            text = (
                tr("Used {used}. The task asks you at the limit.")
                if asks
                else tr("Used {used}. The task stops at the limit.")
            )
            return text.format(used=used)
        case RepeatedCall(count=count, call=call, others=()):
            return tr("The same call was made {count} times with the same result: {call}").format(
                count=count, call=call
            )
        case RepeatedCall(count=count, call=call, others=others):
            text = tr("The same calls were made {count} times with the same results: {calls}")
            return text.format(count=count, calls="; ".join((call, *others)))
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
            text = tr(
                "{agent} was busy or had moved on, so {other} answers here on its own branch. Both replies are kept."
            )
            return text.format(agent=agent, other=other)
        case PromptRemark():
            return prompt_remark_text(data)
        case Remark(text=text):
            return text
        case SummaryForgotten():
            return tr("This summary was removed because it contained a text that you had forgotten for good.")
        case _:
            assert_never(data)


def _end_text(data: TaskEndNotice) -> str:
    match data:
        case TaskCompleted():
            return tr("The task ended.")
        case TaskStopped(by=by):
            return tr("Stopped by {name}.").format(name=by) if by else tr("Stopped.")
        case LimitReached(limit=limit, value=value):
            return limit_text(limit, value)
        case TaskStuck(count=count, call=call, others=()):
            return tr("The agent made the same call {count} times with the same result: {call}").format(
                count=count, call=call
            )
        case TaskStuck(count=count, call=call, others=others):
            text = tr("The agent made the same calls {count} times with the same results: {calls}")
            return text.format(count=count, calls="; ".join((call, *others)))
        case TaskFailed(text=text, cause="internal"):
            return tr("The task failed: {error}").format(error=text)
        case TaskFailed(text=text, cause="summary"):
            return tr("No summary was made: {error}").format(error=text)
        case TaskFailed(text=text):
            return text
        case EndNotSaved(text=text):
            return tr("The end of the task could not be saved. {error}").format(error=text)
        case EngineEnded(resumes=True):
            return tr("The engine ended. The task resumes by itself when the rate limit has passed.")
        case EngineEnded():
            return tr("The engine ended during this task.")
        case _:
            assert_never(data)


def leftovers_text(data: TaskEndNotice) -> str:
    """Return the processes ended with the task and its unread messages; empty if there are none."""
    match data:
        case EndNotSaved():
            return ""
        case EngineEnded(ended=ended):
            return ended_text(ended)
        case _:
            messages = ", ".join(f"“{text}”" for text in data.unread)
            unread = tr("Not delivered: {messages}.").format(messages=messages) if messages else ""
            return " ".join(filter(None, (ended_text(data.ended), unread)))


def ended_text(ended: Sequence[EndedProcess]) -> str:
    """Return the ended processes, as one sentence; empty if there are none."""
    processes = ", ".join(map(process_text, ended))
    return tr("Stopped {processes}.").format(processes=processes) if ended else ""


def signal_text(number: int) -> str:
    """`SIGSEGV (11)`."""
    try:
        return f"{signal.Signals(number).name} ({number})"
    except ValueError:  # a real-time signal, or one of another system
        return tr("signal {number}").format(number=number)


def exit_text(code: int) -> str:
    """Say how a command ended by itself: `exit code 3`, `killed by SIGSEGV (11)` for a negative code."""
    if code < 0:
        return tr("killed by {signal}").format(signal=signal_text(-code))
    return tr("exit code {code}").format(code=code)


def short_exit_text(code: int) -> str:
    """`exit 3`, `killed by SIGSEGV (11)`."""
    return exit_text(code) if code < 0 else tr("exit {code}").format(code=code)


def process_text(process: EndedProcess) -> str:
    """`sleep 60 (pid 1234)`."""
    text = tr("{name} (pid {pid}), still running") if process.still_there else tr("{name} (pid {pid})")
    return text.format(name=process.name.removeprefix("bash -c "), pid=process.pid)


def prompt_remark_text(remark: PromptRemark) -> str:
    path = remark.path
    match remark.code:
        case "too_long":
            text = tr("Only the first {count} of {path} are used. At most {most} are used in total.")
            return text.format(path=path, count=_bytes(remark.count), most=_bytes(remark.most))
        case "no_text":
            return tr("{path} was skipped: it is not a text file.").format(path=path)
        case "unreadable":
            text = tr("{path} was skipped: it cannot be read, is not a file, or is a link that leaves the project.")
            return text.format(path=path)
        case "no_front_matter":
            if remark.count:
                text = trn(
                    "{path} and {n} more were skipped: a skill starts with front matter with a name and a description.",
                    "{path} and {n} more were skipped: a skill starts with front matter with a name and a description.",
                    remark.count,
                )
            else:
                text = tr("{path} was skipped: a skill starts with front matter with a name and a description.")
            return text.format(path=path)
        case "too_many_skills":
            text = tr("The agent is told of {most} skills at most: {path} and those after it were left out.")
            return text.format(most=remark.most, path=path)
        case "untrusted_skills":
            return trn(
                "A skill of this folder is not used, because nobody has trusted it yet. To look at it and trust it: "
                "errand skills trust",
                "{n} skills of this folder are not used, because nobody has trusted them yet. To look at them and "
                "trust them: errand skills trust",
                remark.count + 1,
            )
        case "too_many_facts":
            text = trn(
                "The oldest pinned fact was left out: the limit is {most} tokens in total. Remove or shorten some.",
                "The {n} oldest pinned facts were left out: the limit is {most} tokens in total. "
                "Remove or shorten some.",
                remark.count,
            )
            return text.format(most=f"{remark.most:,}")
        case _:
            assert_never(remark.code)


def _bytes(number: int) -> str:
    return trn("{n} byte", "{n} bytes", number)


def limit_text(limit: LimitKind, value: float) -> str:
    """Say that a limit is used up."""
    match limit:
        case "turns":
            return trn("The limit of {n} turn is reached.", "The limit of {n} turns is reached.", round(value))
        case "minutes":
            return trn("The limit of {n} minute is reached.", "The limit of {n} minutes is reached.", round(value))
        case "money":
            return tr("The budget of {amount} is used up.").format(amount=_dollars(value))
        case "tokens":
            return trn("The limit of {n} token is reached.", "The limit of {n} tokens is reached.", round(value))
        case "day_money":
            return tr("The daily budget of {amount} is used up.").format(amount=_dollars(value))
        case "day_tokens":
            return trn(
                "The daily limit of {n} token is reached.", "The daily limit of {n} tokens is reached.", round(value)
            )
        case _:
            assert_never(limit)


def _dollars(amount: float) -> str:
    return tr("${amount}").format(amount=decimal(f"{amount:.2f}"))


def share_text(share: LimitShare) -> str:
    used, value = share.used, share.value
    match share.limit:
        case "turns":
            text, form = tr("{used} of {limit} turns"), ".0f"
        case "minutes":
            text, form = tr("{used} of {limit} minutes"), ".0f"
        case "money":
            text, form = tr("${used} of ${limit}"), ".2f"
        case "tokens":
            text, form = tr("{used} of {limit} tokens"), ",.0f"
        case "day_money":
            text, form = tr("${used} of today's ${limit}"), ".2f"
        case "day_tokens":
            text, form = tr("{used} of today's {limit} tokens"), ",.0f"
        case _:
            assert_never(share.limit)
    return text.format(used=decimal(format(used, form)), limit=decimal(format(value, form)))


def _context_text(data: ContextNotice) -> str:
    match data:
        case ContextNearlyFull(share=share):
            text = tr("About {percent} % of the context window is used. Older messages will soon be summarised.")
            return text.format(percent=f"{share * 100:.0f}")
        case ContextTruncated():
            return _truncation_text(data)
        case NoSummary(reason=reason):
            return tr("Older messages could not be summarised: {reason}").format(reason=reason)
        case _:
            assert_never(data)


def _truncation_text(data: ContextTruncated) -> str:
    entries = trn(
        "The context window is full: the oldest entry was left out.",
        "The context window is full: the {n} oldest entries were left out.",
        data.entries,
    )
    if not data.shortens_result:
        return entries
    if not data.entries:
        return tr("The context window is full: the middle of the newest result was left out.")
    return tr("{sentence} The newest result was shortened.").format(sentence=entries)


def _no_answer_text(why: MissingAnswer) -> str:
    match why:
        case "empty":
            return tr("The model sent no answer: its last reply has no text and no tool call.")
        case "unfinished":
            return tr("The model sent no answer: its last reply ended before the tool call or text that was to follow.")
        case "call_as_text":
            return tr("The model sent no answer: its last reply is a tool call written as text, which does not run.")


def _reply_text(data: ReplyNotice) -> str:
    match data:
        case ReplyCut(reason=reason):
            text = tr(
                "The reply was cut off because it {reason}. What came before is kept, and none of its tool calls ran. "
                "If this happens again, choose another model or check its server."
            )
            return text.format(reason=reason)
        case NoAnswer(why=why):
            return _no_answer_text(why)
        case ModelChanged(from_model=first, to_model=second, serves_other=True):
            text = tr("The server of {first} serves {second} now, so that was asked.")
            return text.format(first=first, second=second)
        case ModelChanged(from_model=first, to_model=second, reason=""):
            text = tr("{first} did not answer in the last minute, so {second} was used.")
            return text.format(first=first, second=second)
        case ModelChanged(from_model=first, to_model=second, reason=reason):
            text = tr("{first} did not answer, so {second} was used. {reason}")
            return text.format(first=first, second=second, reason=reason)
        case ToolsAsText(model=model):
            text = tr(
                "{model} does not support tool calls. Tools are described in its prompt and it writes calls as text, "
                "which is less reliable. For long tasks, choose a model with tool calls."
            )
            return text.format(model=model)
        case SmallWindow(model=model, window=window, trained=trained):
            text = tr(
                "Ollama gives {model} {window:,} of its {trained:,} tokens of context, and would drop the rest of a "
                "longer conversation without a word, so it is kept shorter. Start Ollama with "
                "OLLAMA_CONTEXT_LENGTH=16384 for more."
            )
            return text.format(model=model, window=window, trained=trained)
        case TemperatureLeftOut(model=model, temperature=temperature, thinks=thinks):
            if thinks:
                text = tr("The temperature {temperature} was not sent: thinking models use their own.")
            else:
                text = tr("The temperature {temperature} was not sent: {model} does not support it.")
            return text.format(temperature=f"{temperature:g}", model=model)
        case ThinkingNotSent(model=model, level=level, why="no_thinking"):
            text = tr("The thinking level “{level}” was not sent: {model} does not support thinking.")
            return text.format(level=level, model=model)
        case ThinkingNotSent(model=model, why="always"):
            return tr("Thinking cannot be switched off for {model}.").format(model=model)
        case ThinkingNotSent(model=model, level=level):
            text = tr(
                "The thinking level “{level}” was not sent: how {model} takes it is unknown. Its default applies."
            )
            return text.format(level=level, model=model)
        case UnknownPrice(model=model):
            text = tr(
                "The price of {model} is unknown, so the budget has no effect. Only turns and minutes limit this task."
            )
            return text.format(model=model)
        case _:
            assert_never(data)


def _round_text(data: RoundEnded) -> str:
    after = data.next_agent
    match data.reason:
        case "limit":
            return trn(
                "The limit of {n} reply in a row is reached. Send a message to continue.",
                "The limit of {n} replies in a row is reached. Send a message to continue.",
                data.replies,
            )
        case "failed":
            text = tr("The round ended: {speaker} failed before it was {next}'s turn. Mention @{next} to continue.")
            return text.format(speaker=data.speaker, next=after)
        case "budget":
            text = tr(
                "The round ended: its budget was used up before it was {next}'s turn. Send a message to continue."
            )
            return text.format(next=after)
        case "not_started":
            return tr("The round ended: {next} could not start. {error}").format(next=after, error=data.error)
        case _:
            assert_never(data.reason)
