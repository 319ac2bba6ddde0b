"""The list of all tasks."""

from tests.benchmarks.models_eval.changing import CHANGING
from tests.benchmarks.models_eval.reading import READING
from tests.benchmarks.models_eval.task import EvalTask
from tests.benchmarks.models_eval.working import WORKING

TASKS: tuple[EvalTask, ...] = (*READING, *CHANGING, *WORKING)


def chosen_tasks(words: str) -> list[EvalTask]:
    """Return the tasks of `all`, `iterate`, or names separated by commas; raises ValueError for an unknown name."""
    if words == "all":
        return list(TASKS)
    if words == "iterate":
        return [task for task in TASKS if task.iterates]
    by_name = {task.name: task for task in TASKS}
    unknown = [name for name in words.split(",") if name not in by_name]
    if unknown:
        raise ValueError(f"There is no task {unknown[0]}; there are iterate, all, {', '.join(by_name)}.")
    return [by_name[name] for name in words.split(",")]
