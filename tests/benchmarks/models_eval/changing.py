"""Tasks that change files: mend, write, rename, delete."""

from tests.benchmarks.models_eval.task import EvalTask, Outcome, shell

_CALC = '"""Sums of a till."""\n\n\ndef add(a, b):\n    return a - b\n\n\ndef double(a):\n    return a * 2\n'
_TEST_CALC = """from calc import add, double

assert add(2, 3) == 5, f"add(2, 3) is {add(2, 3)}, not 5"
assert add(-1, 1) == 0, "add(-1, 1) is not 0"
assert double(4) == 8, "double(4) is not 8"
print("all tests pass")
"""


def _is_mended(outcome: Outcome) -> bool:
    files = outcome.files
    changed = files.get("calc.py", "") != _CALC and files.get("test_calc.py") == _TEST_CALC
    return changed and outcome.prints("test_calc.py") == "all tests pass\n"


_DRAFT = "Dear Ines,\nthe tickets are here.\n"

CHANGING = (
    EvalTask(
        "fix_add",
        ("python3 test_calc.py fails. Fix the bug in calc.py so that the test passes.",),
        _is_mended,
        (
            (
                shell("python3 test_calc.py; cat calc.py"),
                shell("sed -i 's/a - b/a + b/' calc.py"),
                shell("python3 test_calc.py"),
            ),
        ),
        "add subtracted; now it adds, and the test passes.",
        {"calc.py": _CALC, "test_calc.py": _TEST_CALC},
        wrong="sed -i '/add/d' test_calc.py",
        iterates=True,
    ),
    EvalTask(
        "write_file",
        ("Create the file hello.txt with one line: Hello, world",),
        lambda outcome: outcome.files.get("hello.txt", "").strip() == "Hello, world",
        ((shell("echo 'Hello, world' > hello.txt"),),),
        "hello.txt is there.",
        {"other.txt": "Another file.\n"},
        wrong="echo Hello > hello.txt",
        iterates=True,
    ),
    EvalTask(
        "rename_file",
        ("Rename draft.txt to final.txt.",),
        lambda outcome: outcome.files == {"final.txt": _DRAFT, "notes.txt": "Notes.\n"},
        ((shell("mv draft.txt final.txt"),),),
        "It is final.txt now.",
        {"draft.txt": _DRAFT, "notes.txt": "Notes.\n"},
        wrong="cp draft.txt final.txt",
        iterates=True,
    ),
)
