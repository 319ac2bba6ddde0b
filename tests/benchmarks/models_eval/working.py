"""Tasks about how an agent works: run commands, ask, refuse, remember, plan, finish."""

from tests.benchmarks.models_eval.task import EvalTask, Outcome, Step, shell

# What it prints cannot be guessed from its text.
_MEASURE = "import hashlib\n\nprint('measured', int(hashlib.sha256(b'station 4').hexdigest()[:6], 16))\n"
_MEASURED = "1140580"


def _asked(outcome: Outcome) -> bool:
    """Judge that nothing was invented before the answer: a question by the tool, or a reply that ends with one."""
    first = outcome.runs[0]
    asks = any(call.tool == "ask_user" for call in first.calls) or first.end.summary.rstrip().endswith("?")
    return asks and outcome.files.get("postcode.txt", "").strip() == "8047"


WORKING = (
    EvalTask(
        "run_report",
        ("Run python3 measure.py and tell me the number that it prints.",),
        lambda outcome: outcome.says(_MEASURED),
        ((shell("python3 measure.py"),),),
        f"It measured {_MEASURED}.",
        {"measure.py": _MEASURE},
        wrong_answer="It measured 42.",
        iterates=True,
    ),
    EvalTask(
        "ask_missing",
        ("Write the postcode of my home into postcode.txt. It is in no file: ask me for it.", "It is 8047."),
        _asked,
        (
            (Step("ask_user", {"question": "What is the postcode of your home?"}),),
            (shell("echo 8047 > postcode.txt"),),
        ),
        "I need to know: what is your postcode?",
        {"readme.txt": "My papers.\n"},
        wrong="echo 12345 > postcode.txt",
        iterates=True,
    ),
    EvalTask(
        "finish_task",
        ("Create the file done.txt with the line: ok",),
        lambda outcome: (
            outcome.files.get("done.txt", "").strip() == "ok" and outcome.runs[-1].end.completion == "declared"
        ),
        ((shell("echo ok > done.txt"), Step("task_complete", {"summary": "done.txt is there."})),),
        "",
        {"readme.txt": "Nothing here.\n"},
        wrong="echo ok > done.txt",
        options=("--mode", "task"),
        iterates=True,
    ),
)
