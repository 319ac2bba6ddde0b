"""The written-out lists that must be complete. Each failure says which line to add, and where.

The kinds of rows are in tests/window/transcript/test_all_rows.py.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import errand
from errand.cli.table import TABLE
from errand.engine.server.dispatcher import ROUTES
from errand.engine.tools.registry import CONTROL_TOOLS, TOOLS
from errand.protocol.methods import METHODS

APP = Path(errand.__file__).parent


def _modules(folder: str) -> Iterator[tuple[str, ast.Module]]:
    """Yield the modules below a folder of the app, each with its path."""
    for file in sorted((APP / folder).rglob("*.py")):
        yield file.relative_to(APP).as_posix(), ast.parse(file.read_text(encoding="utf-8"))


def _made_by(module: ast.Module, maker: str) -> Iterator[tuple[str, ast.Call]]:
    """Yield the constants of a module that are made by calling `maker`, with the call."""
    for line in module.body:
        match line:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id=called)) as call):
                if called == maker:
                    yield name, call
            case _:
                pass


def test_every_tool_is_in_the_registry() -> None:
    listed = {tool.__name__ for tool in (*TOOLS, *CONTROL_TOOLS)}
    missing = [
        f"{path}: add {node.name} to TOOLS in engine/tools/registry.py"
        for path, module in _modules("engine/tools")
        for node in module.body
        if isinstance(node, ast.ClassDef) and node.name not in listed
        for line in node.body
        if isinstance(line, ast.AnnAssign) and line.value is not None and ast.unparse(line.target) == "tier"
    ]
    assert not missing, missing


def test_every_command_is_in_the_table() -> None:
    listed = {entry.location for entry in (*TABLE.entries, TABLE.default)}
    missing = [
        f'{path}: add Entry("…", "…", "{location}") to cli/table.py'
        for path, module in _modules("cli/commands")
        for name, _ in _made_by(module, "Command")
        if (location := f"{path.removeprefix('cli/').removesuffix('.py').replace('/', '.')}:{name}") not in listed
    ]
    assert not missing, missing


def test_every_method_is_in_the_list_of_its_module_and_has_a_handler() -> None:
    listed, handled = {method.name for method in METHODS}, {route.name for route in ROUTES}
    missing: list[str] = []
    for path, module in _modules("protocol"):
        for name, call in _made_by(module, "Method"):
            (method,) = [ast.literal_eval(argument) for argument in call.args[:1]]
            if method not in listed:
                missing.append(f"{path}: add {name} to METHODS at the end of the module")
            if method not in handled:
                missing.append(f"{path}: add Route({name}, …) to HANDLERS of a module in engine/server/handlers")
    assert not missing, missing
