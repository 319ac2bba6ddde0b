"""Words in the scripts and spellings of other languages, forms, compounds, and one typo."""

from itertools import product
from pathlib import Path
from time import process_time

import pytest

from errand.engine.memory.entries import MemoryEntry
from errand.engine.memory.index import WordIndex
from errand.engine.memory.vectors.base import VectorFilter
from errand.engine.memory.words.spelling import with_endings
from tests.engine.memory.words.conftest import START, Memory

# The question, the entry that is meant, and others of the same language.
SCRIPTS = (
    ("潮汐表在哪里?", "我把潮汐表放在厨房的抽屉里了。", ("明天下午去医院看牙。", "厨房的灯坏了,要换灯泡。")),
    ("会议几点", "会议改到下午三点。", ("牙医在火车站旁边。", "点心很好吃。")),
    ("茶はどこ?", "お茶を棚に置きました。", ("会議は午後三時です。", "歯医者は駅の隣です。")),
    ("会議の時間", "会議は午後三時に変わりました。", ("お茶を棚に置きました。", "時々走ります。")),
    ("カレンダー", "カレンダーに誕生日を書いた。", ("カメラを買った。", "レンタカーを借りた。")),
    ("회의록 어디", "회의록을 서랍에 넣었어요.", ("내일 치과에 가요.", "부엌 전등이 고장났어요.")),
    ("ตารางน้ำขึ้นอยู่ไหน", "ฉันวางตารางน้ำขึ้นน้ำลงไว้ในลิ้นชัก", ("พรุ่งนี้ไปหาหมอฟัน", "ไฟในครัวเสีย")),
    ("где ёлка", "Елка стоит в гараже.", ("Завтра к зубному.", "Лампа на кухне сломалась.")),
    ("που είναι το καΐκι", "Το καικι είναι στο λιμάνι.", ("Αύριο στον οδοντίατρο.", "Η λάμπα χάλασε.")),
    ("ポスター", "ﾎﾟｽﾀｰを貼った。", ("ポテトを食べた。", "スターを見た。")),
)
SPELLINGS = (
    ("Brandstaetter", "Herr Brandstätter hat den Schlüssel."),
    ("Brandstätter", "Herr Brandstaetter hat den Schlüssel."),
    ("Brandstatter", "Herr Brandstätter hat den Schlüssel."),
    ("Grosse Strasse", "Die Große Straße ist gesperrt."),
    ("Straße", "Die Strasse ist gesperrt."),
    ("Soren", "Søren bringt das Boot."),
    ("Soeren", "Søren bringt das Boot."),
    ("Søren", "Soeren bringt das Boot."),
    ("Kjaer", "Herr Kjær kommt morgen."),
    ("coeur", "Le cœur du moteur est cassé."),
    ("ecole", "L'école est fermée."),
    ("Łódź", "The train to Lodz is late."),
    ("l'école", "Mon école est fermée."),
    ("roundHalfEvenEur", "round_half_even_eur is wrong."),
    ("round_half_even_eur", "roundHalfEvenEur is wrong."),
    ("roundHalfEvenEur", "round-half-even-eur is wrong."),
    ("roundHalfEvenEur", "money.round.half.even.eur is wrong."),
    ("tide", "We use kTideBlue."),
    ("HTTP", "The XMLHttpRequest failed."),
    ("cafe\u0301", "The café is closed."),
)
FORMS = (
    ("Wo ist die Tabelle?", "Die Gezeitentabelle hängt am Kühlschrank."),
    ("Was ist mit den Gezeiten?", "Die Gezeitentabelle hängt am Kühlschrank."),
    ("Wo sind die Tabellen?", "Die Tabelle hängt am Kühlschrank."),
    ("Welche Häuser haben wir besucht?", "Das Haus am See war zu teuer."),
    ("Wo ist der Kühlschrank von der Werkstatt?", "Die Kühlschränke kommen am Freitag."),
    ("Où sont les clés de la voiture ?", "La clé est sous le pot."),
    ("¿Dónde están las llaves?", "La llave está en el cajón."),
    ("Dove sono le chiavi?", "La chiave è nel cassetto."),
    ("Waar zijn de sleutels?", "De sleutel ligt in de la."),
    ("Where is the board?", "The keyboards and the dashboard are new."),
)
TYPOS = (
    ("Where is the calender?", "The calendar hangs in the hall."),
    ("refrigeratro", "The refrigerator hums at night."),
    ("Where is the printr?", "The printer is in the hall."),
    ("the rpinter", "The printer is in the hall."),
    ("the brinter", "The printer is in the hall."),
    ("bookngs", "We made two bookings for the ferry."),
    ("Brandstater", "Herr Brandstätter hat den Schlüssel."),
    ("Wo ist die Gezeitentabele?", "Die Gezeitentabelle hängt am Kühlschrank."),
    ("календрь", "Календарь висит в кухне."),
)
OTHERS = (
    "The soup needs more salt.",
    "We walked along the beach.",
    "Morgen kommt der Maler.",
    "Bread and milk, please.",
)


@pytest.mark.parametrize(("question", "meant", "others"), SCRIPTS)
async def test_words_are_found_in_any_script(
    memory: Memory, question: str, meant: str, others: tuple[str, ...]
) -> None:
    await memory.add(*others, meant, *OTHERS)
    assert (await memory.find(question))[:1] == [meant]


@pytest.mark.parametrize(("question", "meant"), (*SPELLINGS, *FORMS, *TYPOS))
async def test_other_spellings_forms_compounds_and_typos_are_found(memory: Memory, question: str, meant: str) -> None:
    await memory.add(*OTHERS, meant, *OTHERS)
    assert (await memory.find(question))[:1] == [meant]


async def test_a_word_that_entries_have_is_not_taken_for_another(memory: Memory) -> None:
    await memory.add("The poet reads on Friday.", "The pöt is a boat.", "Two shoes, one boat.", "A schöt is a rope.")
    assert await memory.find("poet") == ["The poet reads on Friday.", "The pöt is a boat."]
    await memory.add("Lisbon is warm.", "Lisboa is a song.")
    assert (await memory.find("Lisbon"))[:1] == ["Lisbon is warm."]
    assert "Lisboa is a song." not in await memory.find("Lisbon")


async def test_a_word_that_the_filter_lets_nothing_of_through_is_misspelt_too(memory: Memory) -> None:
    await memory.add("Where is the calender?", session="now")
    await memory.add("The calendar hangs in the hall.")
    where = VectorFilter(not_conversations=("now",))
    assert await memory.find("Where is the calender?", where=where) == ["The calendar hangs in the hall."]


async def test_removed_words_are_not_suggested(memory: Memory) -> None:
    await memory.add("The calendar hangs in the hall.", "The soup needs more salt.")
    await memory.index.run(lambda index: index.remove([1]))
    assert await memory.find("calender") == []


def test_a_typo_is_forgiven_among_very_many_words_at_a_bounded_cost(tmp_path: Path) -> None:
    index = WordIndex(tmp_path / "memory.db")
    syllables = ("ka", "lo", "ren", "ti", "mus", "per", "do", "via", "sen", "tor", "gra", "bel")
    every = ["".join(parts) for parts in product(syllables, repeat=4)]
    costs: list[float] = []
    for some in (every[::16], every):
        first = index.next_number()
        index.add(
            MemoryEntry(first + part, f"{len(some)}-{part}", "c1", "User", "user", START, " ".join(some[part::200]))
            for part in range(200)
        )
        start = process_time()
        for word in some[:: len(some) // 20]:
            for misspelt in (word[:3] + word[4:], f"x{word[1:]}", f"{word[:5]}x{word[5:]}"):
                assert any(meant.startswith(word[:-1]) for meant in index.vocabulary.meant_by(misspelt, 50))
        costs.append(process_time() - start)
    index.close()
    assert costs[1] < 8 * costs[0]  # of sixteen times as many words


@pytest.mark.parametrize("sign", ["漢", "äA1", "a\u0301", "aB", "é-"])
def test_a_word_of_many_foreign_signs_costs_as_much_as_it_is_long(sign: str) -> None:
    costs: list[float] = []
    for length in (4_000, 32_000):
        text = sign * (length // len(sign))
        start = process_time()
        assert with_endings(text)
        costs.append(process_time() - start)
    assert costs[1] < 24 * max(costs[0], 0.001)  # with the square of the length, 64 times as much
