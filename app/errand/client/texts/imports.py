"""The outcome of an import, and the sessions of other programs that can be imported."""

from errand.protocol.data import DataImportResult, FoundSessions
from errand.text.translation import grouped, tr, trn


def import_text(done: DataImportResult) -> tuple[str, ...]:
    """Sentences about imported, existing and skipped content."""
    parts = [
        trn("{n} conversation", "{n} conversations", done.conversations),
        trn("{n} message", "{n} messages", done.nodes),
        trn("{n} tool call", "{n} tool calls", done.calls) if done.calls else "",
        trn("{n} picture", "{n} pictures", done.pictures) if done.pictures else "",
    ]
    what = ", ".join(part for part in parts if part)
    if done.source in ("", "Errand"):
        sentences = [tr("Imported: {what}.").format(what=what)]
    else:
        sentences = [tr("Imported from {source}: {what}.").format(source=done.source, what=what)]
    if done.grown:
        sentences.append(
            trn("{n} conversation here got new messages.", "{n} conversations here got new messages.", done.grown)
        )
    if done.present:
        sentences.append(
            trn(
                "{n} was here already and was not changed.", "{n} were here already and were not changed.", done.present
            )
        )
    if done.left:
        left = ", ".join(f"{skipped.kind} ({grouped(skipped.count)})" for skipped in done.left)
        sentences.append(tr("Skipped: {what}.").format(what=left))
    return tuple(sentences)


def found_counts_text(found: FoundSessions) -> str:
    """`12 new, 3 with new messages, 40 here already`."""
    counts = (
        trn("{n} new", "{n} new", found.new) if found.new else "",
        trn("{n} with new messages", "{n} with new messages", found.grown) if found.grown else "",
        trn("{n} here already", "{n} here already", found.present) if found.present else "",
    )
    return ", ".join(count for count in counts if count)
