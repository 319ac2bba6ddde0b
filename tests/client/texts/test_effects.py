"""The effects of an approval, in words that hide nothing."""

import msgspec
import pytest

from errand.client.texts.effects import address_parts, effect_of, host_remark
from errand.protocol.asks import TYPED
from tests.support.rows import CODE, FETCH, SERVICE


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("https://example.org/a?b#c", "example.org"),
        ("https://example.org", "example.org"),
        ("https://example.org:8443/", "example.org"),
        ("https://[2001:db8::1]:80/", "[2001:db8::1]"),
        ("https://example.org@evil.test/", "evil.test"),
        ("https://evil.test\\@example.org/", "evil.test"),
        ("https://evil.test#@example.org/", "evil.test"),
        ("mailto:a@b", ""),
        ("", ""),
    ],
)
def test_the_host_of_an_address_is_found_as_browsers_find_it(address: str, host: str) -> None:
    assert address_parts(address)[1] == host
    assert "".join(address_parts(address)) == address


def test_a_host_that_is_not_what_it_looks_like_is_remarked_upon() -> None:
    assert host_remark("https://example.org/") == ""
    assert host_remark("https://xn--mnchen-3ya.de/") == "browsers show it as münchen.de"
    assert host_remark("https://exam\u0440le.org/").startswith("contains special characters: browsers open xn--")
    assert host_remark("https://bank.test@evil.test/").endswith("this page belongs to evil.test")
    assert host_remark("https://ex%61mple.org/") == "spelled with percent signs"


def test_an_effect_is_the_exact_address_code_or_call_with_hidden_characters_escaped() -> None:
    assert FETCH.approval is not None and CODE.approval is not None and SERVICE.approval is not None
    fetch, code, service = effect_of(FETCH.approval), effect_of(CODE.approval), effect_of(SERVICE.approval)
    assert fetch.text[slice(*fetch.host_at)] == "docs.example.org"
    assert fetch.text == "https://docs.example.org/guide?q=a\\u200bb"
    assert (code.kind, code.language, "\\u202e" in code.text) == ("code", "python", True)
    assert (service.text, service.details_language) == ("github › create_issue", "json")
    assert '"title": "A bug"' in service.details


def test_what_is_typed_into_a_program_says_into_which() -> None:
    assert CODE.approval is not None
    typed = msgspec.structs.replace(
        CODE.approval, text="Type into background command 1", code="rm -rf /<enter>", language=TYPED
    )
    effect = effect_of(typed)
    assert (effect.kind, effect.text, effect.language) == ("code", "rm -rf /<enter>", "")
    assert effect.does == "Type into background command 1"
    assert effect_of(CODE.approval).does == ""


@pytest.mark.parametrize(
    "text",
    [
        "\u0441url https://example.org",  # Cyrillic es
        "cat /ws/\u0440assword.txt",
        "g\u03b9t push",  # Greek iota
        "\uff43url x",  # full width
        "\U0001d41cat x",  # mathematical bold
        "\u0261it push",  # Latin script g
        "\u13a1m -rf x",  # Cherokee
        "rm r\u0435p\u043ert",
        "\u0441\u0440 a b",  # all letters are Cyrillic
        "\u0430-b",
        "l\u0455",
        "\u212aill 1",  # kelvin sign
    ],
)
def test_letters_of_other_alphabets_in_a_command_get_a_remark(text: str) -> None:
    assert CODE.approval is not None
    effect = effect_of(msgspec.structs.replace(CODE.approval, code="", language="", command=text))
    assert "U+" in effect.remark and effect.text == text


@pytest.mark.parametrize(
    "text",
    [
        "git commit -m 'исправлен отчёт'",
        "cat отчет_v2.txt",
        "cat café.txt naïve Straße",
        "open 報告report.txt データbase",
        "cat επιλογή.txt",
        "echo 5µs 1º",
        "cat файл.txt README",
        "echo п\u02bcять",
        "ls -la",
        "cat ไฟล์.txt",
        "echo İstanbul kapı ə",
    ],
)
def test_words_of_one_language_get_none(text: str) -> None:
    assert CODE.approval is not None
    assert effect_of(msgspec.structs.replace(CODE.approval, code="", language="", command=text)).remark == ""


def test_a_remark_names_the_word_and_its_letters() -> None:
    assert CODE.approval is not None
    change = msgspec.structs.replace(CODE.approval, code="", language="", writes=("/ws/\u0440ay.py",))
    assert effect_of(change).remark == "“\u0440ay” mixes alphabets: \u0440 = U+0440 CYRILLIC SMALL LETTER ER"
