"""Tasks that change files: mend, write, rename, delete."""

from collections.abc import Callable

import msgspec

from tests.benchmarks.models_eval.task import EvalTask, Outcome, shell, shells

_CALC = '"""Sums of a till."""\n\n\ndef add(a, b):\n    return a - b\n\n\ndef double(a):\n    return a * 2\n'
_TEST_CALC = """from calc import add, double

assert add(2, 3) == 5, f"add(2, 3) is {add(2, 3)}, not 5"
assert add(-1, 1) == 0, "add(-1, 1) is not 0"
assert double(4) == 8, "double(4) is not 8"
print("all tests pass")
"""


_PASSES = "all tests pass\n"
_PAGES = """def page_count(items, size):
    return items // size + 1


def first_item(page, size):
    return (page - 1) * size
"""
_TEST_PAGES = """from pages import first_item, page_count

assert page_count(10, 5) == 2, f"page_count(10, 5) is {page_count(10, 5)}, not 2"
assert page_count(11, 5) == 3, "page_count(11, 5) is not 3"
assert page_count(1, 5) == 1, "page_count(1, 5) is not 1"
assert page_count(0, 5) == 0, "page_count(0, 5) is not 0"
assert first_item(2, 5) == 5, "first_item(2, 5) is not 5"
print("all tests pass")
"""
_REPORT = """rows = [("bread", 3), ("tea", 4)]
total = 0
for name, count in rows:
    total += count
    print(name, count)
print("total", totl)
"""
_UTIL = "def greet(name):\n    return f'Hello, {name}'\n"
_TEST_UTIL = """from util import double, greet

assert greet("Ada") == "Hello, Ada"
assert double(4) == 8
assert double("ab") == "abab"
print("all tests pass")
"""
_BAD_JSON = '{\n  "theme": "dark",\n  "size": 14,\n  "tabs": ["home", "mail"],\n}\n'
_SETTINGS = "# Settings of the client\nTIMEOUT = 30\nRETRIES = 3\nHOST = 'localhost'\n"
_LETTERS = {
    "letter.txt": "Acme thanks you.\n",
    "offer.txt": "An offer of Acme, valid until May.\nAcme Ltd.\n",
    "terms.txt": "Terms of Acme.\n",
    "names.csv": "Acme,1\n",
}
_DRAFT = "Dear Ines,\nthe tickets are here.\n"
_SHOPPING = "bread\ntea\nplums\n"
_MIXED = {"a.log": "a\n", "b.log": "b\n", "notes.txt": "n\n", "c.log": "c\n"}


def _passes(test: str, text: str) -> Callable[[Outcome], bool]:
    """Return a judge: the test is as it was, and passes."""
    return lambda outcome: outcome.files.get(test) == text and outcome.prints(test) == _PASSES


def _reports(outcome: Outcome) -> bool:
    return outcome.prints("report.py") == "bread 3\ntea 4\ntotal 7\n" and set(outcome.files) == {"report.py"}


def _json(outcome: Outcome, file: str) -> object:
    """Return what the file holds as JSON, None if it is not JSON."""
    try:
        return msgspec.json.decode(outcome.files.get(file, ""))
    except msgspec.DecodeError:
        return None


def _names_apex(outcome: Outcome) -> bool:
    texts = {name: text.replace("Acme", "Apex") for name, text in _LETTERS.items() if name.endswith(".txt")}
    return outcome.files == {**_LETTERS, **texts}


CHANGING = (
    EvalTask(
        "fix_pages",
        ("python3 test_pages.py fails. Find the bug in pages.py, fix it, and run the test again.",),
        _passes("test_pages.py", _TEST_PAGES),
        (
            shells(
                "python3 test_pages.py; cat pages.py",
                "sed -i 's,items // size + 1,-(-items // size),' pages.py",
                "python3 test_pages.py",
            ),
        ),
        "The page count was one too high for full pages. The test passes now.",
        {"pages.py": _PAGES, "test_pages.py": _TEST_PAGES},
        wrong="sed -i 's,items // size + 1,items // size,' pages.py",
    ),
    EvalTask(
        "fix_name",
        ("python3 report.py ends with an error. Fix it.",),
        _reports,
        (shells("python3 report.py; cat report.py", "sed -i 's/totl/total/' report.py", "python3 report.py"),),
        "The name total was misspelt.",
        {"report.py": _REPORT},
        wrong="sed -i '/totl/d' report.py",
    ),
    EvalTask(
        "fix_json",
        ("settings.json is not valid JSON. Correct it without changing its values.",),
        lambda outcome: _json(outcome, "settings.json") == {"theme": "dark", "size": 14, "tabs": ["home", "mail"]},
        (shells("cat settings.json", "sed -i 's/\\],/]/' settings.json", "python3 -m json.tool settings.json"),),
        "There was a comma too many.",
        {"settings.json": _BAD_JSON},
        wrong="echo '{}' > settings.json",
    ),
    EvalTask(
        "change_value",
        ("Change the timeout in settings.py from 30 to 45.",),
        lambda outcome: outcome.files == {"settings.py": _SETTINGS.replace("= 30", "= 45")},
        (shells("sed -i 's/TIMEOUT = 30/TIMEOUT = 45/' settings.py"),),
        "The timeout is 45.",
        {"settings.py": _SETTINGS},
        wrong="echo 'TIMEOUT = 45' > settings.py",
    ),
    EvalTask(
        "add_function",
        ("test_util.py needs a function double in util.py that returns its argument times two. Add it.",),
        _passes("test_util.py", _TEST_UTIL),
        (shells("printf '\\n\\ndef double(value):\\n    return value * 2\\n' >> util.py", "python3 test_util.py"),),
        "double is there.",
        {"util.py": _UTIL, "test_util.py": _TEST_UTIL},
        wrong="printf 'def double(value):\\n    return value * 2\\n' > util.py",
    ),
    EvalTask(
        "replace_name",
        ("Our company is called Apex now. Replace Acme by Apex in all .txt files here, and in no other file.",),
        _names_apex,
        (shells("sed -i 's/Acme/Apex/g' *.txt"),),
        "The three letters say Apex.",
        _LETTERS,
        wrong="sed -i 's/Acme/Apex/g' *",
    ),
    EvalTask(
        "write_program",
        ("Write the program squares.py, which prints the squares of the numbers 1 to 5, each on its own line.",),
        lambda outcome: (outcome.prints("squares.py") or "").split() == ["1", "4", "9", "16", "25"],
        (shells("printf 'for number in range(1, 6):\\n    print(number**2)\\n' > squares.py", "python3 squares.py"),),
        "squares.py prints the squares.",
        {"readme.txt": "Programs.\n"},
        wrong="echo 'print(1, 2, 3, 4, 5)' > squares.py",
    ),
    EvalTask(
        "append_line",
        ("Add the line milk at the end of shopping.txt.",),
        lambda outcome: outcome.files.get("shopping.txt", "").rstrip("\n") == f"{_SHOPPING}milk",
        (shells("echo milk >> shopping.txt"),),
        "milk is on the list.",
        {"shopping.txt": _SHOPPING},
        wrong="echo milk > shopping.txt",
    ),
    EvalTask(
        "write_json",
        ('Write person.json: a JSON object with "name" Ada and "age" 36, a number.',),
        lambda outcome: _json(outcome, "person.json") == {"name": "Ada", "age": 36},
        ((shell("""echo '{"name": "Ada", "age": 36}' > person.json"""),),),
        "person.json is written.",
        {"readme.txt": "People.\n"},
        wrong="""echo '{"name": "Ada", "age": "36"}' > person.json""",
    ),
    EvalTask(
        "move_logs",
        ("Move all .log files into a new folder named logs.",),
        lambda outcome: (
            outcome.files == {f"logs/{name}" if name.endswith(".log") else name: text for name, text in _MIXED.items()}
        ),
        (shells("mkdir logs; mv *.log logs/"),),
        "The logs are in logs.",
        _MIXED,
        wrong="mkdir logs; mv * logs/",
    ),
    EvalTask(
        "delete_file",
        ("Delete the file old.tmp and nothing else.",),
        lambda outcome: outcome.files == {"new.tmp": "new\n", "notes.txt": "Notes.\n"},
        (shells("rm old.tmp"),),
        "old.tmp is deleted.",
        {"old.tmp": "old\n", "new.tmp": "new\n", "notes.txt": "Notes.\n"},
        wrong="rm *.tmp",
    ),
    EvalTask(
        "fix_add",
        ("python3 test_calc.py fails. Fix the bug in calc.py so that the test passes.",),
        _passes("test_calc.py", _TEST_CALC),
        (shells("python3 test_calc.py; cat calc.py", "sed -i 's/a - b/a + b/' calc.py", "python3 test_calc.py"),),
        "add subtracted; now it adds, and the test passes.",
        {"calc.py": _CALC, "test_calc.py": _TEST_CALC},
        wrong="sed -i '/add/d' test_calc.py",
        iterates=True,
    ),
    EvalTask(
        "write_file",
        ("Create the file hello.txt with one line: Hello, world",),
        lambda outcome: outcome.files.get("hello.txt", "").strip() == "Hello, world",
        (shells("echo 'Hello, world' > hello.txt"),),
        "hello.txt is there.",
        {"other.txt": "Another file.\n"},
        wrong="echo Hello > hello.txt",
        iterates=True,
    ),
    EvalTask(
        "rename_file",
        ("Rename draft.txt to final.txt.",),
        lambda outcome: outcome.files == {"final.txt": _DRAFT, "notes.txt": "Notes.\n"},
        (shells("mv draft.txt final.txt"),),
        "It is final.txt now.",
        {"draft.txt": _DRAFT, "notes.txt": "Notes.\n"},
        wrong="cp draft.txt final.txt",
        iterates=True,
    ),
)
