"""Texts of a limited length for models."""


def shorten(text: str, longest: int) -> str:
    """Return the beginning and the end, the most informative parts: the command and its outcome."""
    if len(text) <= longest:
        return text
    begin, end = longest * 2 // 3, longest // 3
    return f"{text[:begin]}\n[… {len(text) - begin - end:,} characters left out …]\n{text[-end:]}"
