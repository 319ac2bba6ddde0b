"""Arranges the conversations of a list in groups, by day or by folder, and folds the finished ones."""

from collections import Counter
from collections.abc import Iterable, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import PurePath
from typing import Literal

from errand.client.number_format import month_name, weekday_name
from errand.protocol.conversations import Conversation
from errand.text.translation import tr
from errand.window.stores.conversation_list import PagedListStore
from errand.window.stores.window_state import Grouping
from errand.window.views.sidebar.conversation_marks import ConversationMarks

PINNED = tr("Pinned")
NO_FOLDER = tr("No folder")

# Finished conversations that a group shows until it is unfolded.
_MAX_FINISHED_CONVERSATIONS = 5
# Conversations that are grouped by folder at first, and how many "Show older" adds: each change groups all of them.
GROUPED = 1_000
_OLDER = "older"

RowKind = Literal["conversation", "more", "fewer", "older"]


@dataclass(frozen=True, slots=True)
class ListRow:
    """One row of the list. `key` is the id of its conversation, or names the line that shows more or fewer.

    `heading` is that of its group, the same in all of its rows. `hidden` counts the conversations that "more" shows.
    """

    kind: RowKind
    key: str
    group: str
    heading: str
    hidden: int = 0


def day_heading(moment: datetime, now: datetime) -> str:
    """Converts both to the time zone of `now`."""
    day, today = moment.astimezone(now.tzinfo).date(), now.date()
    if day >= today:
        return tr("Today")
    if day == today - timedelta(days=1):
        return tr("Yesterday")
    if day > today - timedelta(days=7):
        return weekday_name(day)
    return tr("{month} {year}").format(month=month_name(day), year=day.year)


def heading_of(conversation: Conversation, now: datetime) -> str:
    """Return the heading of its day; pinned ones have their own."""
    if conversation.pinned and not conversation.archived:
        return PINNED
    return day_heading(conversation.updated_at, now)


def arrange(
    listing: PagedListStore,
    marks: ConversationMarks,
    grouping: Grouping,
    now: datetime,
    unfolded: Set[str],
    current: str,
    most: int = GROUPED,
) -> tuple[list[ListRow], int]:
    """Return the rows at the top, and the index of the first conversation below them: those follow without folding.

    By day these are the older than a week; by folder there are none, and `most` conversations are grouped. `current`
    is never folded away.
    """
    rows: list[ListRow] = []
    if grouping == "folder":
        end = listing.count()
        groups = _by_folder((listing.at(index) for index in range(min(end, most))), marks)
    else:
        groups, end = _by_day(listing, now)
    for group, (heading, members) in groups.items():
        rows += _folded(group, heading, members, marks, unfolded, current)
    is_closed = grouping == "folder" or (bool(rows) and rows[-1].kind == "more")
    has_older = listing.has_more or (grouping == "folder" and end > most)
    if has_older and end == listing.count() and is_closed:
        rows.append(ListRow("older", _OLDER, rows[-1].group, rows[-1].heading))
    return rows, end


_Groups = dict[str, tuple[str, list[Conversation]]]


def _by_day(listing: PagedListStore, now: datetime) -> tuple[_Groups, int]:
    """Newest first, so that a heading is looked for once a day."""
    groups: _Groups = {}
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    week_ago = today - timedelta(days=6)
    heading, begins = "", now
    for index in range(listing.count()):
        conversation = listing.at(index)
        if conversation.pinned:
            groups.setdefault(PINNED, (PINNED, []))[1].append(conversation)
            continue
        if conversation.updated_at < week_ago:
            return groups, index
        if not heading or conversation.updated_at < begins:
            heading = heading_of(conversation, now)
            begins = today - timedelta(days=(today.date() - conversation.updated_at.astimezone(now.tzinfo).date()).days)
        groups.setdefault(heading, (heading, []))[1].append(conversation)
    return groups, listing.count()


def _by_folder(conversations: Iterable[Conversation], marks: ConversationMarks) -> _Groups:
    """Folders in the order of their newest conversation."""
    groups: dict[str, list[Conversation]] = {}
    for conversation in conversations:
        key = PINNED if conversation.pinned else marks.folder(conversation)
        groups.setdefault(key, []).append(conversation)
    names = Counter(PurePath(folder).name for folder in groups)
    return {key: (_folder_heading(key, names), members) for key, members in groups.items()}


def _folder_heading(folder: str, names: Counter[str]) -> str:
    """Its name; with the folder above if another one has the same name."""
    if folder in ("", PINNED):
        return folder or NO_FOLDER
    path = PurePath(folder)
    if not path.name:
        return folder
    return path.name if names[path.name] == 1 else str(PurePath(path.parent.name, path.name))


def _folded(
    group: str,
    heading: str,
    members: list[Conversation],
    marks: ConversationMarks,
    unfolded: Set[str],
    current: str,
) -> list[ListRow]:
    """Return the rows of one group; a line for a single hidden one would save nothing."""
    finished = [
        conversation.id
        for conversation in members
        if conversation.id != current and not marks.is_active(conversation.id)
    ]
    hidden = frozenset(finished[_MAX_FINISHED_CONVERSATIONS:])
    folds = group != PINNED and len(hidden) > 1
    if not folds or group in unfolded:
        rows = [ListRow("conversation", conversation.id, group, heading) for conversation in members]
        return [*rows, ListRow("fewer", f"fold:{group}", group, heading)] if folds else rows
    rows = [
        ListRow("conversation", conversation.id, group, heading)
        for conversation in members
        if conversation.id not in hidden
    ]
    return [*rows, ListRow("more", f"fold:{group}", group, heading, len(hidden))]
