"""Regular expressions of models: the usual ones compile, those that would take seconds are refused in words."""

import pytest

from errand.engine.tools.patterns import compile_pattern


@pytest.mark.parametrize(
    "pattern",
    [
        r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}",
        r"^\s*(def|class)\s+\w+\(.*\):$",
        r"(\d{1,3}\.){3}\d{1,3}",
        r"[^\]{9}]{3}|\[{5}|\{2000\}",
        r".{0,100000}x{2,}",
        "TODO" * 100,
    ],
)
def test_a_usual_pattern_compiles(pattern: str) -> None:
    assert compile_pattern(pattern).pattern == pattern


@pytest.mark.parametrize(
    "pattern",
    [
        "((a{1000}){1000}){1000}",
        "a{1000000}",
        "[a-z]{1000000}",
        r"(?:\d{200}-){200}",
        "(" + "[a-z]" * 1_000 + "){500,}",
        "(a{300}|b{300}){50}",
    ],
)
def test_a_pattern_that_multiplies_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="multiply"):
        compile_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [("x" * 10_001, "10,001 characters"), ("(" * 3_000 + ")" * 3_000, "nested too deep"), ("(", "missing")],
)
def test_a_pattern_that_cannot_be_compiled_is_refused_in_words(pattern: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        compile_pattern(pattern)
