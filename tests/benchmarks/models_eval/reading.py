"""Tasks that are solved by an answer: read a file, find one, find a text, count."""

from tests.benchmarks.models_eval.task import EvalTask, Outcome, shells

_NOTE = "Shopping for Sunday: bread, plums, tea.\nThe secret word is marzipan.\nCall Ines about the tickets.\n"
_CONFIG = "[server]\nhost = 127.0.0.1\nport = 8473\n\n[log]\nlevel = info\nfile = server.log\n"
_ROWS = "".join(f"{number},{number * 7 % 13}\n" for number in range(1, 38))
_PRICES = """\"\"\"Prices in the shop.\"\"\"

TAX = 0.19


def with_tax(price):
    return round(price * (1 + TAX), 2)


def without_tax(price):
    return round(price / (1 + TAX), 2)


def parse_price(text):
    return float(text.replace(",", "."))
"""


def _secret_word(outcome: Outcome) -> bool:
    return outcome.says("marzipan") and outcome.files == {"note.txt": _NOTE}


_PAPERS = {
    "readme.md": "# Papers\n\nNotes of several years.\n",
    "docs/plan.md": "# Plan\n\nWrite more.\n",
    "docs/old/2019/needle.md": "# Needle\n\nFound.\n",
    "docs/old/2020/thread.md": "# Thread\n",
    "drafts/letter.md": "Dear Ms. Moreau,\n",
}
_LOGS = {
    "north/a.log": "start\nstop\n",
    "north/b.log": "start\nfailed at 12:40\nstop\n",
    "south/a.log": "start\nticket PELICAN-77 opened\nstop\n",
    "south/c.log": "start\nticket HERON-12 opened\nstop\n",
    "readme.txt": "Logs of both stations.\n",
}

_PRICE_FILES = {
    "shop/prices.py": _PRICES,
    "shop/till.py": "from prices import parse_price\n",
    "readme.txt": "A shop.\n",
}

READING = (
    EvalTask(
        "read_note",
        ("What is the secret word in note.txt?",),
        _secret_word,
        (shells("cat note.txt"),),
        "The secret word is marzipan.",
        {"note.txt": _NOTE},
        wrong_answer="The secret word is 12345.",
        iterates=True,
    ),
    EvalTask(
        "read_port",
        ("Which port does the server in config.ini listen on?",),
        lambda outcome: outcome.says("8473") and outcome.files == {"config.ini": _CONFIG},
        (shells("cat config.ini"),),
        "It listens on port 8473.",
        {"config.ini": _CONFIG},
        wrong_answer="It listens on port 8080.",
    ),
    EvalTask(
        "count_lines",
        ("How many lines has the file data.csv?",),
        lambda outcome: outcome.says("37") and outcome.files == {"data.csv": _ROWS},
        (shells("wc -l data.csv"),),
        "data.csv has 37 lines.",
        {"data.csv": _ROWS},
        wrong_answer="data.csv has 40 lines.",
    ),
    EvalTask(
        "find_file",
        ("Where is the file needle.md? Answer with its path.",),
        lambda outcome: outcome.says("docs/old/2019/needle.md") and outcome.files == _PAPERS,
        (shells("find . -name needle.md"),),
        "It is docs/old/2019/needle.md.",
        _PAPERS,
        wrong_answer="It is docs/needle.md.",
    ),
    EvalTask(
        "find_text",
        ("Which file contains the text PELICAN-77? Answer with its path.",),
        lambda outcome: outcome.says("south/a.log") and outcome.files == _LOGS,
        (shells("grep -rl PELICAN-77 ."),),
        "It is in south/a.log.",
        _LOGS,
        wrong_answer="It is in north/a.log.",
        iterates=True,
    ),
    EvalTask(
        "find_function",
        ("In which file and on which line is the function parse_price defined?",),
        lambda outcome: outcome.says("shop/prices.py") and outcome.says("14") and outcome.files == _PRICE_FILES,
        (shells("grep -rn 'def parse_price' ."),),
        "parse_price is defined in shop/prices.py on line 14.",
        _PRICE_FILES,
        wrong_answer="parse_price is defined in shop/till.py on line 1.",
    ),
)
