"""The mutations: operators of cosmic-ray, and one of our own that removes a statement.

cosmic-ray has no types and is installed for `make mutants` only, so it is imported here, lazily.
"""

import difflib
import importlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

# One change of each kind: `<` to `<=` finds everything that `<` to `>` does, and more.
_OPERATORS = (
    "AddNot",
    "ExceptionReplacer",
    "NumberReplacer",
    "ReplaceAndWithOr",
    "ReplaceBinaryOperator_Add_Sub",
    "ReplaceBinaryOperator_Mul_Div",
    "ReplaceBinaryOperator_Sub_Add",
    "ReplaceBreakWithContinue",
    "ReplaceComparisonOperator_Eq_NotEq",
    "ReplaceComparisonOperator_GtE_Gt",
    "ReplaceComparisonOperator_Gt_GtE",
    "ReplaceComparisonOperator_IsNot_Is",
    "ReplaceComparisonOperator_Is_IsNot",
    "ReplaceComparisonOperator_LtE_Lt",
    "ReplaceComparisonOperator_Lt_LtE",
    "ReplaceComparisonOperator_NotEq_Eq",
    "ReplaceContinueWithBreak",
    "ReplaceFalseWithTrue",
    "ReplaceOrWithAnd",
    "ReplaceTrueWithFalse",
    "ReplaceUnaryOperator_Delete_Not",
    "ZeroIterationForLoop",
)

_Place = tuple[int, int]


class _Node(Protocol):
    type: str
    start_pos: _Place
    end_pos: _Place
    children: "list[_Node]"

    def get_first_leaf(self) -> "_Leaf": ...


class _Leaf(_Node, Protocol):
    prefix: str


class _Operator(Protocol):
    def mutation_positions(self, node: _Node) -> Iterable[tuple[_Place, _Place]]: ...

    def mutate(self, node: _Node, index: int) -> _Node | None: ...


@dataclass(frozen=True, slots=True)
class Mutant:
    """One changed module. `occurrence` counts the places where its operator applies."""

    module: Path
    line: int
    operator: str
    occurrence: int

    def __str__(self) -> str:
        return f"{self.module}:{self.line} {self.operator}"

    def apply(self, source: str) -> str:
        code = _mutate_code()(source, _operator(self.operator), self.occurrence)
        assert code is not None, f"{self} is not there any more"
        return code


class StatementDropper:
    """Removes a call, an `await`, a `raise` or an assignment to an attribute."""

    def mutation_positions(self, node: _Node) -> Iterator[tuple[_Place, _Place]]:
        if node.type == "simple_stmt":
            statement = node.children[0]
            kind = statement.children[0].type if statement.type == "expr_stmt" else statement.type
            if kind in ("atom_expr", "raise_stmt"):
                yield statement.start_pos, statement.end_pos

    def mutate(self, node: _Node, index: int) -> _Node:
        nothing = cast(_Leaf, _tree()("pass").children[0])
        nothing.prefix = node.children[0].get_first_leaf().prefix
        node.children[0] = nothing
        return node


def mutants_of(module: Path, source: str) -> Iterator[Mutant]:
    """All mutants of one module, except in signatures and outside of classes and functions: tuned bounds, defaults."""
    nodes, lines = list(_nodes()(_tree()(source))), source.splitlines()
    for name in (StatementDropper.__name__, *_OPERATORS):
        operator, occurrence = _operator(name), 0
        for node in nodes:
            for (line, _), _ in operator.mutation_positions(node):
                if lines[line - 1][:1].isspace() and not lines[line - 1].lstrip().startswith(("def ", "async def ")):
                    yield Mutant(module, line, name, occurrence)
                occurrence += 1


def difference(before: str, after: str) -> list[str]:
    """The removed and added lines, with their signs."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    return [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]


def _operator(name: str) -> _Operator:
    if name == StatementDropper.__name__:
        return StatementDropper()
    plugins = importlib.import_module("cosmic_ray.plugins")
    return cast("Callable[[str], Callable[[], _Operator]]", plugins.get_operator)(f"core/{name}")()


def _mutate_code() -> Callable[[str, _Operator, int], str | None]:
    return importlib.import_module("cosmic_ray.mutating").mutate_code


def _tree() -> Callable[[str], _Node]:
    return importlib.import_module("cosmic_ray.ast").get_ast


def _nodes() -> Callable[[_Node], Iterator[_Node]]:
    return importlib.import_module("cosmic_ray.ast").ast_nodes
