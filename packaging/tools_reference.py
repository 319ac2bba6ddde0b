"""The reference of the tools, made from what each declares. `reference_pages.py` writes it."""

from collections.abc import Iterator

import msgspec

from errand.engine.tools.call_display import display_of
from errand.engine.tools.registry import CONTROL_TOOLS, TOOLS
from errand.protocol.base import JsonObject, JsonValue


def tools_page(intro: str) -> str:
    """docs/tools.md: the introduction, then every tool with its arguments and how its calls are display."""
    parts = [intro, "## Tools that act", *(_tool(tool.name, tool.description, tool.parameters) for tool in TOOLS)]
    parts += ["## Tools that control a task"]
    parts += (_tool(tool.name, tool.description, tool.parameters) for tool in CONTROL_TOOLS)
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _tool(name: str, description: str, parameters: JsonObject) -> str:
    fields = {field: _object(shape) for field, shape in _object(parameters["properties"]).items()}
    lines = [f"### `{name}`", "", description, "", "| argument | type | default | meaning |", "|---|---|---|---|"]
    required = parameters.get("required", [])
    assert isinstance(required, list)
    lines += (_argument(field, shape, is_required=field in required) for field, shape in fields.items())
    lines += ["", "| call | while it runs | afterwards | icon |", "|---|---|---|---|", *_calls(name, fields)]
    return "\n".join(lines)


def _argument(name: str, shape: JsonObject, *, is_required: bool) -> str:
    default = "required" if is_required else f"`{_json(shape['default'])}`" if "default" in shape else ""
    meaning = str(shape.get("description", "")).replace("*", "\\*").replace("|", "\\|")
    return f"| `{name}` | {_type(shape)} | {default} | {meaning} |"


def _type(shape: JsonObject) -> str:
    match shape:
        case {"enum": list(values)}:
            return ", ".join(f"`{_json(value)}`" for value in values)
        case {"type": "array", "items": dict(items)}:
            return f"list of {_type(items)}"
        case _:
            return str(shape["type"])


def _calls(name: str, fields: dict[str, JsonObject]) -> Iterator[str]:
    """A line for each action of the tool, or one if it has no actions."""
    placeholders: JsonObject = {
        field: field.upper() for field, shape in fields.items() if shape.get("type") == "string"
    }
    actions = fields.get("action", {}).get("enum", [])
    assert isinstance(actions, list)
    for action in actions or [None]:
        arguments = placeholders if action is None else placeholders | {"action": action}
        display = display_of(name, arguments)
        call = f"`{name}`" if action is None else f"`{action}`"
        target = f" `{display.target}`" if display.target else ""
        yield f"| {call} | {display.running}{target} | {display.done}{target} | {display.icon.replace('_', ' ')} |"


def _json(value: JsonValue) -> str:
    return msgspec.json.encode(value).decode()


def _object(value: JsonValue) -> JsonObject:
    assert isinstance(value, dict)
    return value
