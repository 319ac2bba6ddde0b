"""Rare identifiers of a question come first: as they are written, with the model and without."""

import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from errand.engine.memory.embedding import Embedder
from errand.engine.memory.embedding_models import ENGLISH
from errand.engine.memory.index_thread import IndexThread
from errand.engine.memory.passages import embed_entries, vectors_of
from errand.engine.memory.search import Semantics
from errand.engine.memory.vectors.embedded import EmbeddedVectors
from errand.engine.memory.words.identifiers import identifiers_in
from tests.engine.memory.words.conftest import Memory
from tests.support.minilm import minilm

# A question, the entry that has its identifier, and some that mean much the same without it.
CASES = (
    (
        "Where do we use the colour #0B6E99?",
        "The links in the footer are #0b6e99 now.",
        ("The colour of the header is #14213D.", "We use the colours blue and green.", "Where is the colour used?"),
    ),
    (
        "What was error 40001 about?",
        "Serialization failure (40001): try the transaction again.",
        ("The error was about a missing file.", "What was the error about? Code 40002.", "Error 140001 is another."),
    ),
    (
        "How far is ABC-123?",
        "abc-123 waits for the review by Ilse.",
        ("ABC-124 is done.", "How far is the ticket ABC-1234?", "The ticket is far from done."),
    ),
    (
        "What did commit 3f2a9bc change?",
        "3f2a9bc41d7e8f00aa11bb22cc33dd44ee55ff66 removes the old cache.",
        ("The commit 3f2a9bd changes the cache.", "What did the last commit change?", "I changed the commit."),
    ),
    (
        "What is in src/app/main.py?",
        "~/work/src/app/main.py parses the arguments.",
        ("src/app/main.pyc can go.", "What is in the file src/lib/main.py?", "The main file of the app is in src."),
    ),
    (
        "Who wrote report_q3.xlsx?",
        "Sent report_q3.xlsx to the bank.",
        ("Who wrote the report of the third quarter?", "report_q2.xlsx was written by Mara.", "Mara writes reports."),
    ),
    (
        "What changed in v2.3.1?",
        "2.3.1 mends the crash on start.",
        ("v2.3.10 changes the colours.", "What changed in version 2.3?", "v2.3.1.4 is for the tests."),
    ),
    (
        "What does roundHalfEvenEur do?",
        "round_half_even_eur is called for every invoice line.",
        ("Round half the numbers to even ones.", "What does roundHalfUpEur do?", "Eur is the currency that we use."),
    ),
    (
        "where is round_half_even_eur called",
        "The invoice calls roundHalfEvenEur.",
        ("The function is called twice.", "round_half_up_eur is called in the invoice.", "half of the calls"),
    ),
    (
        "Which colour is kTideBlue?",
        "k-tide-blue: the one of the sea",
        ("Which blue has the tide?", "The colour of the tide tables is blue.", "kTideGreen is a colour too."),
    ),
    (
        "Who is anna.b@example.com?",
        "Mail from Anna.B@example.com: the boiler is mended.",
        ("Who is Anna?", "bert.b@example.com is the plumber.", "anna.b@example.org wrote, too."),
    ),
    (
        "Which plan costs $12.99?",
        "The small one is 12,99 USD a month.",
        ("Which plan costs less?", "The plan costs $112.99.", "The other plan is $12.90, and the large one $99.12."),
    ),
    (
        "What did we pay €1,299 for?",
        "Invoice of the carpenter: 1.299,00 EUR",
        ("We paid 299 € for the oven.", "What did we pay for?", "We paid €1,298 to the plumber."),
    ),
    (
        "Whose number is +31 6 1234 5678?",
        "Ruben: 06-12345678, after six",
        ("Whose number is this?", "My phone number is +31 6 1234 5679.", "His number is 020 555 1234."),
    ),
    (
        "what runs on 10.0.0.17?",
        "10.0.0.17 is the printer in the hall.",
        ("10.0.0.170 is what runs the lights.", "What runs on the server?", "110.0.0.17 is not ours."),
    ),
)
# Others that mean the same but have no identifier.
CHATTER = [
    f"We talked about the {thing} again, number {count}." for count in range(12) for thing in ("colour", "error")
]


@pytest.mark.parametrize(("question", "exact", "others"), CASES)
async def test_an_entry_with_the_identifier_of_the_question_comes_first(
    memory: Memory, question: str, exact: str, others: tuple[str, ...]
) -> None:
    await memory.add(*others, exact, *others, *CHATTER)
    assert (await memory.find(question))[0] == exact


@pytest.fixture
async def memory_by_meaning(tmp_path: Path) -> AsyncGenerator[Memory]:
    folder = minilm()
    if folder is None or sys.platform == "win32":
        pytest.skip("the real embedding model is not there: `make model` builds it, or ERRAND_MINILM names its folder")
    embedder = Embedder(lambda: folder)
    vectors = EmbeddedVectors(tmp_path / "vectors", ENGLISH.dimensions, vectors_of(ENGLISH))
    memory = Memory(IndexThread(tmp_path / "memory.db"), Semantics(embedder, vectors))
    for _, exact, others in CASES:
        await memory.add(*others, exact)
    await memory.add(*CHATTER)
    await vectors.upsert(await embed_entries(memory.entries, embedder))
    yield memory
    await memory.index.close()
    await vectors.close()
    await embedder.close()


async def test_it_comes_first_with_the_real_model_too(memory_by_meaning: Memory) -> None:
    for question, _, _ in CASES:
        first = (await memory_by_meaning.find(question))[0]
        assert any(identifier.pattern.search(first) for identifier in identifiers_in(question)), (question, first)


async def test_of_several_identifiers_all_count_more_than_one(memory: Memory) -> None:
    await memory.add("ABC-123 is open.", "ABC-123 is mended in v2.3.1.", "v2.3.1 is out.", *CHATTER)
    assert (await memory.find("Is ABC-123 in v2.3.1?"))[0] == "ABC-123 is mended in v2.3.1."


async def test_what_very_many_entries_have_is_not_rare(memory: Memory) -> None:
    await memory.add(*(f"main.py line {line}" for line in range(150)), "The deadline of the report is Friday.")
    assert "The deadline of the report is Friday." in await memory.find("the deadline of the report in main.py")


@pytest.mark.parametrize(
    "text",
    [
        "Which well-known and/or state-of-the-art baker was here in 2024, e.g. on 2026-03-05 at 14:30?",
        "It was the 3rd time on 19.12.2026 um 14.30 Uhr, 5km from here.",
        "",
    ],
)
def test_hyphens_slashes_days_and_years_of_prose_are_not_identifiers(text: str) -> None:
    assert identifiers_in(text) == ()


def test_a_long_text_of_nothing_but_beginnings_is_read_in_a_moment() -> None:
    for text in ("a" * 4_000, "1" * 4_000, "a." * 2_000, "/a" * 2_000, "1," * 2_000, "a-" * 2_000, "0 " * 2_000):
        assert len(identifiers_in(text)) <= 12
