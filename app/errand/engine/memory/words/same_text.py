"""Which entries have equal texts: a number that is stored with each."""

from hashlib import blake2b

from errand.engine.memory.entries import MemoryEntry

_OUTER = " .,;:!?…"


def text_number(entry: MemoryEntry) -> int:
    """Return a number that entries have in common if their texts differ in case, white space or a last full stop alone.

    Two people who say the same are two entries; results are equal whichever tool they are from.
    """
    text = " ".join(entry.text.lower().split()).strip(_OUTER) or entry.text
    speaker = entry.speaker if entry.role == "user" else ""
    digest = blake2b(f"{entry.role}\n{speaker}\n{text}".encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
