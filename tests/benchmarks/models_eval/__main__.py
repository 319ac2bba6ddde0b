"""`make models-eval`: runs the tasks against a server and prints a row for each; ends with 1 if the harness fails."""

import argparse
import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from tests.benchmarks.models_eval.attempt import Limits, attempt
from tests.benchmarks.models_eval.first_token import first_token_table, first_tokens
from tests.benchmarks.models_eval.llama_server import ServerStartError, llama_server
from tests.benchmarks.models_eval.model import EvaluatedModel
from tests.benchmarks.models_eval.results import HEAD, EvalRow, ResultsFile, row_line, sum_line
from tests.benchmarks.models_eval.scripted import scripted_model
from tests.benchmarks.models_eval.task import EvalTask
from tests.benchmarks.models_eval.tasks import chosen_tasks
from tests.benchmarks.models_eval.weights import WeightsError, build_server, build_weights, named_weights

_RESULTS = Path("build", "models-eval")
_MAX_TURNS = 15
_MAX_SECONDS = 600.0


class Options(msgspec.Struct, frozen=True):
    """The arguments of the command line."""

    api_base: str
    model: str
    tasks: str
    out: Path | None
    key: str
    turns: int
    seconds: float
    temperature: str
    again: bool
    scripted: bool
    weights: str
    first_token: bool

    @property
    def results(self) -> Path:
        name = "scripted" if self.scripted else self.weights or self.model.replace("/", "-")
        return self.out or _RESULTS / f"{name}.jsonl"


def read_options(arguments: list[str]) -> Options:
    """Read the arguments; ends the program if they are wrong."""
    parser = argparse.ArgumentParser(prog="make models-eval", description="Evaluate a model with small tasks.")
    parser.add_argument("--api-base", default="", help="base URL of an OpenAI-compatible server")
    parser.add_argument("--model", default="", help="the model, as openai_compatible/NAME")
    parser.add_argument("--weights", default="", help="one of the small models of make models-eval-setup, served here")
    parser.add_argument("--tasks", default="all", help="all, iterate (eight of them), or names separated by commas")
    parser.add_argument("--out", type=Path, help="file of JSON lines for the rows; transcripts go into a folder beside")
    parser.add_argument("--key", default="none", help="API key that is sent to the server")
    parser.add_argument("--turns", type=int, default=_MAX_TURNS, help="turns that each message may take")
    parser.add_argument("--seconds", type=float, default=_MAX_SECONDS, help="seconds that each task may take")
    parser.add_argument("--temperature", default="0", help="that of the personality, '' for the default")
    parser.add_argument("--again", action="store_true", help="run tasks again that have a row")
    parser.add_argument("--scripted", action="store_true", help="check the harness with a model that solves all tasks")
    parser.add_argument(
        "--first-token", action="store_true", help="measure the time until the first token, and no task"
    )
    options = msgspec.convert(vars(parser.parse_args(arguments)), Options)
    if not (options.scripted or options.weights or (options.api_base and options.model)):
        parser.error("--api-base and --model, or --weights, or --scripted")
    return options


async def evaluate(options: Options) -> int:
    """Run the tasks that have no row yet, and print all rows; returns 1 if the script does not solve one."""
    if options.first_token:
        async with _model(options) as (model, _):
            _write(first_token_table(await first_tokens(model)))
        return 0
    tasks = chosen_tasks(options.tasks)
    file = ResultsFile(options.results)
    limits = Limits(options.turns, options.seconds, options.temperature)
    _write(HEAD)
    rows: list[EvalRow] = []
    async with _model(options) as (model, begin):
        rows_before = {} if options.again or options.scripted else file.rows(model.name)
        for task in tasks:
            row = rows_before.get(task.name)
            if row is None:
                begin(task)
                row = await attempt(task, model, limits, options.results.with_suffix(""))
                file.add(row)
            rows.append(row)
            _write(row_line(row))
    _write(sum_line(rows))
    return 1 if options.scripted and not all(row.solved for row in rows) else 0


@asynccontextmanager
async def _model(options: Options) -> AsyncGenerator[tuple[EvaluatedModel, Callable[[EvalTask], None]]]:
    """Give the model, and a function that is called before each task."""
    if options.scripted:
        async with scripted_model() as (script, model):
            yield model, script.begin
    elif options.weights:
        gguf, program = build_weights(named_weights(options.weights)), build_server().absolute()
        async with llama_server(program, gguf, options.results.with_suffix(".log")) as url:
            yield EvaluatedModel(f"openai_compatible/{options.weights}", url), lambda task: None
    else:
        yield EvaluatedModel(options.model, options.api_base, options.key), lambda task: None


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(evaluate(read_options(sys.argv[1:]))))
    except (ValueError, WeightsError, ServerStartError) as error:
        sys.exit(str(error))
