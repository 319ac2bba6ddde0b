"""The table of benchmarks: it prints the value of each row, and its last lines count the rows that its lines fail."""

import pytest

from tests.benchmarks.__main__ import write_table
from tests.benchmarks.row import Row

HOLD = (
    Row("at most", 2.5, "ms", 3),
    Row("at least", 12.25, "", 5, more_is_better=True),
    Row("of the floor", 50.5, "steps/s", 0.5, 90, more_is_better=True, of_floor=True),
    Row("judged by another", 7.125, "ms", None),
)
FAIL = (
    Row("too much", 3.5, "ms", 3),
    Row("too little", 4.75, "", 5, more_is_better=True),
    Row("did not run to its end", 1, "", 0),
)


def test_the_table_prints_each_value_and_counts_what_it_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert write_table((row, "outside") for row in (*HOLD, *FAIL)) == 1
    lines = capsys.readouterr().out.splitlines()
    table = {line.split(" | ")[0][2:]: line for line in lines if line.endswith("|")}
    for row in (*HOLD, *FAIL):
        assert f"| {row.value:.2f}" in table[row.name]
        assert ("**FAIL**" in table[row.name]) == (row in FAIL)
    assert any(line.startswith("4 of 7 rows hold") for line in lines)
    assert [line for line in lines if line.startswith("FAIL")] == [f"FAIL {row.name}" for row in FAIL]


def test_a_table_whose_rows_hold_ends_well() -> None:
    assert write_table((row, "in-process") for row in HOLD) == 0
