"""What an import took in and what it left, in the same words in every face."""

from app.client.figures import count
from app.protocol.data import DataImportResult


def import_words(done: DataImportResult) -> tuple[str, ...]:
    """Sentences: what came in, what was here already, what was left."""
    source = f" from {done.source}" if done.source not in ("", "Errand") else ""
    parts = [f"{count(done.conversations, 'conversation')} with {count(done.nodes, 'message')}"]
    parts += [count(number, noun) for number, noun in ((done.calls, "tool call"), (done.pictures, "picture")) if number]
    words = [f"{', '.join(parts)} taken in{source}."]
    if done.present:
        words.append(f"{done.present:,} {'was' if done.present == 1 else 'were'} here already and left as they are.")
    if done.left:
        words.append(f"Left: {', '.join(f'{one.kind} ({one.count:,})' for one in done.left)}.")
    return tuple(words)
