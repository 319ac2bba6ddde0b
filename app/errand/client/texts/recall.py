"""Texts about what an agent was given from memory: why, and what of other folders was not."""

import shlex
from pathlib import Path

from errand.client.safe_text import escape_hidden_line
from errand.protocol.blocks import RecallBlock, RecalledEntry, WithheldEntries
from errand.protocol.memory import MemoryItem
from errand.text.notice_text import recall_title
from errand.text.translation import tr, trn

_MAX_WORD_LENGTH = 60
_MAX_LINES = 5


def reason_text(entry: RecalledEntry) -> str:
    """Return why an entry was recalled, in words; empty for one from before reasons were stored."""
    match entry.reason:
        case "words":
            quoted_words = ", ".join(
                tr("“{title}”").format(title=escape_hidden_line(word[:_MAX_WORD_LENGTH])) for word in entry.words
            )
            return tr("has {words}").format(words=quoted_words)
        case "meaning":
            return tr("similar meaning")
        case "answer":
            return tr("the answer to it")
        case "question":
            return tr("the question before it")
        case None:
            return ""


def folder_of_fact(item: MemoryItem) -> str:
    """Return the folder that a fact made of an entry is about; empty for conversations without one.

    These have a folder of their own, with the name of the conversation.
    """
    return "" if Path(item.folder).name == item.conversation_id else item.folder


def folder_text(folder: str) -> str:
    """Return a folder on one line, with ~ for the home folder."""
    if not folder:
        return tr("conversations without a folder")
    path, home = Path(folder), Path.home()
    is_inside = path != home and path.is_relative_to(home)
    return escape_hidden_line(f"~/{path.relative_to(home)}" if is_inside else folder)


def withheld_text(recall: RecallBlock, withheld: WithheldEntries) -> str:
    """Return what an agent was not given, and where that is."""
    count = trn("{n} entry in {other} may help here", "{n} entries in {other} may help here", withheld.count).format(
        other=folder_text(withheld.folder)
    )
    return tr("{entries}. That folder does not share its memory with {folder}.").format(
        entries=count, folder=folder_text(recall.folder)
    )


def recall_lines(recall: RecallBlock) -> list[str]:
    """Return what was recalled on a few lines, for the terminal: where it is from, and why; and what was not given."""
    lines = [recall_title(recall)]
    for entry in recall.entries[:_MAX_LINES]:
        title = " ".join(entry.conversation_title.split())[:_MAX_WORD_LENGTH] or tr("an untitled conversation")
        where = ", ".join(
            filter(
                None, (f"“{title}”", entry.folder and folder_text(entry.folder), f"{entry.at.astimezone():%Y-%m-%d}")
            )
        )
        reason = reason_text(entry)
        lines.append(f"  {where}: {reason}" if reason else f"  {where}")
    for withheld in recall.withheld:
        lines.append(withheld_text(recall, withheld))
        if not recall.folder:
            continue
        share = f"errand memory folders share {shlex.quote(recall.folder)} {shlex.quote(withheld.folder)}"
        lines.append(tr("To share it: {command}").format(command=share))
    return lines
