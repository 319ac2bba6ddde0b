"""Which new file of a task is a deleted one under another name, as git's `-M` tells it."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from errand.engine.checkpoints.contents import id_of
from errand.engine.checkpoints.history import CannotRestore, FileHistory
from errand.engine.tools.code.edits import text_lines
from errand.engine.tools.code.text_file import decode
from errand.protocol.changes import NOTHING, ChangedFile

# As git: at least half of the larger one is in the other.
_MIN_SIMILARITY = 0.5
# Every list of changes asks: larger tasks have only renames without other changes.
_MAX_PAIRS = 400
_MAX_COMPARED_BYTES = 200_000
# Lines that are compared at most, some 0.1 s.
_MAX_LINES = 400_000
_EMPTY = id_of(b"")


def renamed_files(histories: Sequence[FileHistory], files: Sequence[ChangedFile]) -> dict[int, int]:
    """Return the numbers of renamed files, by those of the files that they have become: first the same, then similar
    ones.
    """
    gone: dict[int, str] = {}
    new: dict[int, str] = {}
    for number, (history, file) in enumerate(zip(histories, files, strict=True)):
        if file.state == "changed" and not file.is_folder and file.is_new != file.is_deleted:
            (gone if file.is_deleted else new)[number] = history.base if file.is_deleted else history.head
    renames = dict(_same(gone, new))
    gone = {number: content for number, content in gone.items() if number not in renames.values()}
    new = {number: content for number, content in new.items() if number not in renames and content != NOTHING}
    if 0 < len(gone) * len(new) <= _MAX_PAIRS:
        renames |= _similar(_lines(histories, gone), _lines(histories, new))
    return renames


def _same(gone: Mapping[int, str], new: Mapping[int, str]) -> Iterator[tuple[int, int]]:
    """Yield pairs of a new and a deleted file with the same content, if no other file has it."""
    by_content = defaultdict[str, tuple[list[int], list[int]]](lambda: ([], []))
    for at, numbers in enumerate((gone, new)):
        for number, content in numbers.items():
            by_content[content][at].append(number)
    for content, (olds, news) in by_content.items():
        if len(olds) == len(news) == 1 and content != _EMPTY:
            yield news[0], olds[0]


def _lines(histories: Sequence[FileHistory], contents: Mapping[int, str]) -> dict[int, "Counter[str]"]:
    """Return the lines of those that are text of a usual size."""
    counts: dict[int, Counter[str]] = {}
    for number, content in contents.items():
        try:
            data = histories[number].data(content)
        except CannotRestore:
            continue
        file = decode(data) if 0 < len(data) <= _MAX_COMPARED_BYTES else None
        if file is not None:
            counts[number] = Counter(text_lines(file.text))
    return counts


def _similar(gone: Mapping[int, "Counter[str]"], new: Mapping[int, "Counter[str]"]) -> dict[int, int]:
    """Return each file once, the most alike first; none where that would take long."""
    if sum(map(len, gone.values())) * len(new) > _MAX_LINES:
        return {}
    shares = [(_share(old, now), number, new_number) for number, old in gone.items() for new_number, now in new.items()]
    renames: dict[int, int] = {}
    for share, number, new_number in sorted(shares, key=lambda one: (-one[0], one[1], one[2])):
        if share >= _MIN_SIMILARITY and new_number not in renames and number not in renames.values():
            renames[new_number] = number
    return renames


def _share(old: "Counter[str]", now: "Counter[str]") -> float:
    """Return the share of the larger text that the two have in common, by characters."""
    return _size(old & now) / max(_size(old), _size(now), 1)


def _size(lines: "Counter[str]") -> int:
    return sum(len(line) * count for line, count in lines.items())
