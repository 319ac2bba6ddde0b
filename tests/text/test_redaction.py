"""Keys are found in a text in every encoding, and wherever it was split."""

import json
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errand.text.redaction import REMOVED, RedactedStream, Redactor, redact

KEY = "sk-ant/Zq7+planted=0123456789"
FORMS: dict[str, Callable[[str], str]] = {
    "plain": lambda key: key,
    "JSON with escaped slashes": lambda key: json.dumps(key)[1:-1].replace("/", "\\/"),
    "JSON in escapes": lambda key: "".join(f"\\u{ord(character):04x}" for character in key),
    "JSON in JSON": lambda key: "".join(f"\\\\u{ord(character):04X}" for character in key),
    "every second escaped": lambda key: "".join(f"\\u{ord(c):04x}" if i % 2 else c for i, c in enumerate(key)),
    "bytes of Python": lambda key: "".join(f"\\x{ord(character):02x}" for character in key),
    "an address": lambda key: quote(key, safe=""),
    "an address in full": lambda key: "".join(f"%{ord(character):02X}" for character in key),
    "an address twice": lambda key: quote(quote(key, safe=""), safe=""),
    "a page": lambda key: "".join(f"&#{ord(character)};" for character in key),
    "a page in hexadecimal": lambda key: "".join(f"&#x{ord(character):x};" for character in key),
}
# Forms of the key as a text, not of each of its characters.
ENCODED: dict[str, Callable[[str], str]] = {
    "base64": lambda key: b64encode(key.encode()).decode(),
    "base64 for addresses": lambda key: urlsafe_b64encode(key.encode()).decode(),
    "base64 in JSON": lambda key: b64encode(key.encode()).decode().replace("/", "\\/").replace("+", "\\u002b"),
    "base64 in an address": lambda key: quote(b64encode(key.encode()).decode(), safe=""),
    "hexadecimal digits": lambda key: key.encode().hex(),
    "upper hexadecimal digits": lambda key: key.encode().hex().upper(),
}


@pytest.mark.parametrize("form", FORMS | ENCODED)
def test_a_secret_is_found_in_every_form(form: str) -> None:
    redactor = Redactor("another-secret-0123", KEY)
    written = (FORMS | ENCODED)[form](KEY)
    assert redactor.hide(f"before {written} after {written}") == f"before {REMOVED} after {REMOVED}"
    assert redactor.hide_bytes(b"\xff" + written.encode()) == b"\xff" + REMOVED.encode()


@given(
    form=st.sampled_from(sorted(FORMS)),
    escaped=st.sets(st.integers(0, len(KEY) - 1), max_size=4),
)
def test_a_secret_is_found_whichever_of_its_characters_are_escaped(form: str, escaped: set[int]) -> None:
    written = "".join(FORMS[form](character) if at in escaped else character for at, character in enumerate(KEY))
    assert Redactor("another-secret-0123", KEY).hide(f"{written} after") == f"{REMOVED} after"


@given(
    form=st.sampled_from(sorted(FORMS | ENCODED)),
    around=st.tuples(st.text(alphabet="s k-\\%&u0a/", max_size=12), st.text(alphabet="s k-\\%&u0a/", max_size=12)),
    cuts=st.lists(st.integers(0, 300), max_size=12),
)
def test_a_stream_gives_what_the_whole_gives_wherever_it_is_cut(
    form: str, around: tuple[str, str], cuts: list[int]
) -> None:
    redactor = Redactor(KEY, "s k-u0a/s k-u0a/")
    text = around[0] + (FORMS | ENCODED)[form](KEY) + around[1]
    stream, at, redacted = RedactedStream(redactor), 0, ""
    for cut in sorted(cuts):
        redacted += stream.feed(text[at:cut])
        at = max(at, cut)
    redacted += stream.feed(text[at:]) + stream.finish()
    assert KEY not in redacted and (FORMS | ENCODED)[form](KEY) not in redacted
    assert redacted.replace(REMOVED, "") in text.replace(KEY, "") or REMOVED in redacted


@given(text=st.text(alphabet="abs-k\\u0073%&#;/ \n", max_size=60), cuts=st.lists(st.integers(0, 60), max_size=8))
def test_a_text_without_a_secret_comes_out_as_it_was(text: str, cuts: list[int]) -> None:
    stream, at, redacted = RedactedStream(Redactor(KEY)), 0, ""
    for cut in sorted(cuts):
        redacted += stream.feed(text[at:cut])
        at = max(at, cut)
    assert redacted + stream.feed(text[at:]) + stream.finish() == text


_OF_OTHERS = ("ghp_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7", "sk-proj-a1b2c3d4e5f6g7h8", "glpat-Ab3dEf6hIj9kLm2nOp5q")


def _wrapped(text: str, width: int, ending: str = "\n") -> str:
    return ending.join(text[at : at + width] for at in range(0, len(text), width))


@pytest.mark.parametrize("key", [KEY, *_OF_OTHERS])
@pytest.mark.parametrize("before", ["", "a", "ab", "user:", '{"auths": "' + "x" * 70])
def test_a_key_within_an_encoded_text_is_found(key: str, before: str) -> None:
    redactor = Redactor(KEY)
    data = f'{before} {key}", "end": 1'.encode()
    encoded = b64encode(data).decode()
    for blob in (
        encoded,
        f"data:text/plain;base64,{encoded}",
        _wrapped(encoded, 64),
        _wrapped(encoded, 76, "\r\n"),
        _wrapped(encoded, 40, "\\n"),
        urlsafe_b64encode(data).decode().rstrip("="),
        data.hex(),
        _wrapped(data.hex(), 60),
        data.hex(" "),
        data.hex(" ", 2).upper(),
    ):
        text = f"before {blob} after"
        hidden = redactor(text)
        assert REMOVED in hidden and hidden.startswith("before ") and hidden.endswith(" after"), blob
        digits = "".join(filter(str.isalnum, hidden.replace(REMOVED, "")))
        assert key.encode().hex()[2:-2] not in digits.lower()
        assert not any(b64encode(bytes(n) + key.encode()).decode()[4:-4].replace("/", "") in digits for n in range(3))


def test_an_encoded_text_without_a_key_stays() -> None:
    blob = b64encode(bytes(range(256)) * 40).decode()
    text = "\n".join((blob, "0123456789abcdef" * 40, "app/errand/engine/memory/passages.py"))
    assert Redactor(KEY)(text) == text


@pytest.mark.parametrize("length", range(len(KEY) // 2, len(KEY)))
def test_of_a_short_text_that_was_cut_within_a_secret_both_parts_go(length: int) -> None:
    redactor = Redactor(KEY)
    for ending in ("", "…", " [… 3 characters left out …]"):
        assert redactor(f"It is {KEY[:length]}{ending}") == f"It is {REMOVED}{ending}"
    assert redactor(f"… {KEY[-length:]} it is") == f"… {REMOVED} it is"


@pytest.mark.parametrize("key", _OF_OTHERS)
@pytest.mark.parametrize("ending", ["", "…", "...", " …", " [… 3 characters left out …]", '…"'])
def test_the_beginning_of_a_key_that_was_cut_is_a_key(key: str, ending: str) -> None:
    for length in range(key.rindex("-" if "-" in key else "_") + 6, len(key) + 1):
        assert redact(f"It is {key[:length]}{ending}").rstrip(".") == f"It is {REMOVED}{ending}".rstrip("."), length


def test_of_a_text_that_was_cut_within_a_secret_the_beginning_goes_too() -> None:
    redactor = Redactor(KEY)
    assert redactor.hide(f"It is {KEY[:-1]}") == f"It is {REMOVED}"
    assert redactor.hide("Keys begin with sk-") == "Keys begin with sk-"


def test_a_stand_in_for_a_key_is_no_secret_and_shapes_are_known_without_values() -> None:
    redactor = Redactor("none", "x", "")
    assert redactor("There is none, x.") == "There is none, x."
    assert redactor("Bearer abcdefgh12345") == redact("Bearer abcdefgh12345") == REMOVED


def test_the_longest_of_secrets_that_begin_alike_goes_whole() -> None:
    redactor = Redactor("secret-one", "secret-one-and-more")
    assert redactor.hide("secret-one-and-more.") == f"{REMOVED}."
    stream = RedactedStream(redactor)
    assert stream.feed("secret-one") + stream.feed("-and-") + stream.feed("more.") + stream.finish() == f"{REMOVED}."


def test_an_escape_that_never_ends_holds_nothing_back_for_ever() -> None:
    stream = RedactedStream(Redactor(KEY))
    redacted = "".join(stream.feed("\\" * 50) for _ in range(20))
    assert len(redacted) > 900


@pytest.mark.parametrize("piece", ["%73", "\\u0073", "&#115;", "sk-planted-01234567"])
def test_a_text_that_begins_keys_everywhere_hangs_nothing(piece: str) -> None:
    redactor = Redactor(*(f"sk-planted-0123456789{number:06}" for number in range(20)))
    text = piece * (300_000 // len(piece))
    began = time.process_time()
    assert redactor.split(text, is_end=False)[0] in text
    assert time.process_time() - began < 5


SHOWN = {
    "curl -H 'Authorization: Bearer abcdef1234567890' https://x": "curl -H 'Authorization: Bearer {}' https://x",
    'curl -H "Authorization: Basic dXNlcjpwYXNz" x': 'curl -H "Authorization: Basic {}" x',
    "curl -u admin:pa55word http://x": "curl -u admin:{} http://x",
    "mysql --password hunter2hunter2": "mysql --password {}",
    "postgres://me:hunter2@db/shop": "postgres://me:{}@db/shop",
    "https://x/?access_token=aaaabbbb1111&x=1": "https://x/?access_token={}&x=1",
    'api_key = "abcd1234efgh5678"': 'api_key = "{}"',
    '{"clientSecret": "abcd1234efgh5678"}': '{"clientSecret": "{}"}',
    "X-Api-Key: 12ab34cd56ef": "X-Api-Key: {}",
    "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY": "AWS_SECRET_ACCESS_KEY={}",
    "AccountName=me;AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1tq4==": "AccountName=me;AccountKey={}",
    "AKIAIOSFODNN7EXAMPLE": "{}",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789": "{}",
    "glpat-abcdefghij0123456789": "{}",
    "xoxb-123456789012-abcdef": "{}",
    "sk-proj-a1b2c3d4e5f6": "{}",
    "sk_live_abcdefghij0123": "{}",
    "hf_abcdefghijklmnopqrstuvwxyz0123": "{}",
    "npm_abcdefghijklmnopqrstuvwxyz0123456789": "{}",
    "123456789:AAabcdefghijklmnopqrstuvwxyz012345678": "{}",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N": "{}",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blbn-NzaA==\nabc\n-----END OPENSSH PRIVATE KEY-----": "{}",
    "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nMIIEcut": "{}",
}


@pytest.mark.parametrize("text", SHOWN)
def test_keys_of_others_are_known_by_their_format_or_their_name(text: str) -> None:
    assert redact(f"before {text} after") == f"before {SHOWN[text].replace('{}', REMOVED)} after".replace(
        f"{REMOVED} after" if "MIIEcut" in text else "\0", REMOVED
    )


@given(
    sample=st.sampled_from(sorted(SHOWN)),
    line=st.sampled_from(["The token is in the key file. ", "ключ от двери: ", '{"a\\n": "-u --user 1"}, ']),
    length=st.integers(32_768 - 120, 32_768 + 10),
)
def test_a_key_is_found_wherever_it_stands_in_a_long_text(sample: str, line: str, length: int) -> None:
    before = f"{(line * length)[:length]}\n"
    assert redact(f"{before}{sample}\n{before}".removesuffix(before)) == before + redact(f"{sample}\n")
    assert redact(before) == before


@pytest.mark.parametrize(
    "text",
    [
        "task-force-2 and the risk-assessment of sk-learn",
        "password: str = None",
        'parser.add_argument("--token", help="access token of the server")',
        '"token_count": 12345, max_tokens=100000',
        "sorted(items, key=lambda item: item.name1)",
        "primary_key=True, key: value1234, monkey = banana12345",
        "the cache key sha256:abcdef0123456789 of commit d55d68f3ab12cd34",
        "Bearer authentication is used at http://127.0.0.1:8080/x@y",
        "git@github.com:errand/errand.git, see https://docs.python.org/3.11/library/secrets.html",
        "token=$TOKEN password=${PASSWORD} secret=<your secret> key_file=/home/u/id1",
        "c4ca4238a0b923820dcc509a6f75849b",
        "change npm_config",
        "learn sk-learn",
        "mend the gh_pages…",
        "the server at http://localhost:8080",
    ],
)
def test_ordinary_text_is_left_as_it_is(text: str) -> None:
    assert redact(text) == text


HOSTILE = (
    *(
        "key=",
        "token:",
        "secret = ",
        "sk-",
        "Bearer ",
        "bearer" + " " * 8,
        "://a:",
        "https://user:",
        "-u a:",
        "--user a",
    ),
    *(
        "-----BEGIN RSA PRIVATE KEY-----",
        "eyJaaaaaaaaaa.",
        "password ",
        "x",
        "1",
        "AIza",
        "gh",
        "12345678:AA",
        "--",
        "- ",
    ),
    *("passwordpassword", "SG.aaaaaaaaaaaaaaaaaa.", '"', "'", "-----BEGIN ", "keykey", "authorization: ", "a_", "api_"),
    *("-eyJ", "eyJaaaaaaaaaa.eyJ-", "_sk-", "key: ", "-token ", "\N{KELVIN SIGN}ey="),
    *("c2st", "c2stYTFiMmMzZDRlNWY2Zzdo\n", "736b2d", "73 6b 2d ", "a1B2c3D4…", "sk-a1b2...", "a" * 25 + "\\n", "…"),
)


@pytest.mark.parametrize("piece", HOSTILE)
def test_the_time_for_a_long_text_is_bounded(piece: str) -> None:
    text = piece * (250_000 // len(piece))
    began = time.process_time()
    redact(text)
    assert time.process_time() - began < 2.5  # seconds of CPU; growth with the square takes many times that


@given(st.lists(st.sampled_from(HOSTILE), max_size=60))
def test_redacting_twice_changes_nothing_more(pieces: list[str]) -> None:
    once = redact(" ".join(pieces))
    assert redact(once) == once


def test_a_secret_that_is_of_no_use_any_more_is_forgotten() -> None:
    redactor = Redactor("first-secret-word", "other-secret-word")
    redactor.remove("first-secret-word", "never-added-here")
    assert redactor.hide("first-secret-word other-secret-word") == f"first-secret-word {REMOVED}"
    redactor.remove("other-secret-word")
    assert redactor.hide("other-secret-word") == "other-secret-word" and redactor.encoded == ()
