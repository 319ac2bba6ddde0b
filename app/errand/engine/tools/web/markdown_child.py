"""The process that decodes a response and converts a page to Markdown: both are hostile, so they may only end this.

Its arguments are the descriptor of the body, the address, the encoding that the header names, and `page`, `text` or
`unknown`. The title and then the text go to standard output, each a JSON string in a line. It imports nothing else of
the app.
"""

import codecs
import json
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress

_MEMORY = 2_000_000_000
_CPU_S = 10
_MAX_TEXT_LENGTH = 4_000_000
# Less than this of the main content means that it was not found.
_MIN_MAIN_LENGTH = 200

_META = re.compile(rb"<meta[^>]{0,200}?charset\s{0,20}=\s{0,20}[\"']?\s{0,20}([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROLS = re.compile(r"[^\t\n\f\r -~\x80-\U0010ffff]")
_BEGINNINGS = ("<!doctype html", "<html", "<head", "<body")

# The encodings of the web and their labels (https://encoding.spec.whatwg.org/#names-and-labels), by Python's codecs.
# Python knows others, some of which take minutes for a page or decode what is no text.
_LABELS = """
utf-8: unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf-8 utf8 x-unicode20utf8
cp866: 866 cp866 csibm866 ibm866
iso8859-2: csisolatin2 iso-8859-2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2
iso8859-3: csisolatin3 iso-8859-3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3
iso8859-4: csisolatin4 iso-8859-4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4
iso8859-5: csisolatincyrillic cyrillic iso-8859-5 iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988
iso8859-6: arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6 iso-8859-6-e iso-8859-6-i
iso8859-6: iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987
iso8859-7: csisolatingreek ecma-118 elot_928 greek greek8 iso-8859-7 iso-ir-126 iso8859-7 iso88597 iso_8859-7
iso8859-7: iso_8859-7:1987 sun_eu_greek
iso8859-8: csiso88598e csisolatinhebrew hebrew iso-8859-8 iso-8859-8-e iso-ir-138 iso8859-8 iso88598 iso_8859-8
iso8859-8: iso_8859-8:1988 visual csiso88598i iso-8859-8-i logical
iso8859-10: csisolatin6 iso-8859-10 iso-ir-157 iso8859-10 iso885910 l6 latin6
iso8859-13: iso-8859-13 iso8859-13 iso885913
iso8859-14: iso-8859-14 iso8859-14 iso885914
iso8859-15: csisolatin9 iso-8859-15 iso8859-15 iso885915 iso_8859-15 l9
iso8859-16: iso-8859-16
koi8-r: cskoi8r koi koi8 koi8-r koi8_r
koi8-u: koi8-ru koi8-u
mac-roman: csmacintosh mac macintosh x-mac-roman
mac-cyrillic: x-mac-cyrillic x-mac-ukrainian
cp874: dos-874 iso-8859-11 iso8859-11 iso885911 tis-620 windows-874
cp1250: cp1250 windows-1250 x-cp1250
cp1251: cp1251 windows-1251 x-cp1251
cp1252: ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 iso_8859-1
cp1252: iso_8859-1:1987 l1 latin1 us-ascii windows-1252 x-cp1252
cp1253: cp1253 windows-1253 x-cp1253
cp1254: cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 latin5 windows-1254
cp1254: x-cp1254
cp1255: cp1255 windows-1255 x-cp1255
cp1256: cp1256 windows-1256 x-cp1256
cp1257: cp1257 windows-1257 x-cp1257
cp1258: cp1258 windows-1258 x-cp1258
gb18030: chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 gbk iso-ir-58 x-gbk gb18030
big5hkscs: big5 big5-hkscs cn-big5 csbig5 x-x-big5
euc_jp: cseucpkdfmtjapanese euc-jp x-euc-jp
iso2022_jp: csiso2022jp iso-2022-jp
cp932: csshiftjis ms932 ms_kanji shift-jis shift_jis sjis windows-31j x-sjis
cp949: cseuckr csksc56011987 euc-kr iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 windows-949
utf-16-be: unicodefffe utf-16be
utf-16-le: csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le
"""
CODECS = {
    label: codec
    for line in _LABELS.strip().splitlines()
    for codec, _, labels in (line.partition(": "),)
    for label in labels.split()
}


def main(arguments: Sequence[str]) -> int:
    _limit()
    descriptor, url, charset, kind = int(arguments[0]), *arguments[1:4]
    with os.fdopen(descriptor, "rb") as file:
        file.seek(0)
        text = decoded(file.read(), charset)
    is_page = kind == "page" or (kind == "unknown" and text[:1_000].lstrip().lower().startswith(_BEGINNINGS))
    title, text = _markdown(_CONTROLS.sub("\ufffd", text), url) if is_page else ("", text)
    lines = (json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") for value in (title, text))
    sys.stdout.buffer.write(b"\n".join(lines))
    return 0


def decoded(body: bytes, charset: str) -> str:
    """Decode by what the first bytes, the header or the page name, else as UTF-8 or windows-1252."""
    mark, named = next(((mark, codec) for mark, codec in _MARKS if body.startswith(mark)), (b"", ""))
    meta = _META.search(body[:4_096])
    labels = (charset, meta[1].decode() if meta else "")
    for codec in (named, *(CODECS.get(label.strip().lower(), "") for label in labels), "utf-8"):
        with suppress(LookupError, UnicodeError):
            # A character that is cut at the end is left out.
            return codecs.getincrementaldecoder(codec)().decode(body.removeprefix(mark))
    is_mostly_utf8 = body.decode("utf-8", "replace").count("\ufffd") <= len(body) // 1_000
    return body.decode("utf-8" if is_mostly_utf8 else "cp1252", "replace")


def _markdown(page: str, url: str) -> tuple[str, str]:
    """Return the title, and the main content with absolute links."""
    from html_to_markdown import ConversionOptions, PreprocessingOptions, convert

    title, text = "", ""
    for preset, removes in (("aggressive", True), ("minimal", False)):
        options = ConversionOptions(
            base_url=url,
            preprocessing=PreprocessingOptions(preset=preset, remove_navigation=removes, remove_forms=False),
            inline_data_media="ALT_TEXT_ONLY",
            compact_tables=True,
        )
        result = convert(page, options)
        title = result.metadata.document.title or ""
        text = _without_front_matter(result.content or "")
        if len(text) >= _MIN_MAIN_LENGTH:
            break
    return title[:500], text[:_MAX_TEXT_LENGTH]


def _without_front_matter(text: str) -> str:
    if text.startswith("---\n"):
        _, _, text = text.partition("\n---\n")
    return text.strip()


def _limit() -> None:
    if sys.platform == "win32":
        return
    import resource

    for limit, value in ((resource.RLIMIT_AS, _MEMORY), (resource.RLIMIT_CPU, _CPU_S), (resource.RLIMIT_CORE, 0)):
        with suppress(ValueError, OSError):  # a lower hard limit holds
            resource.setrlimit(limit, (value, value))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
