"""What the model is told of the XML form: the texts beside this file, filled in."""

import functools
from importlib.resources import files
from string import Template
from xml.sax.saxutils import escape

import msgspec

from app.engine.models.base import ToolDefinition


@functools.cache
def text(name: str) -> str:
    """The text of <name>.md."""
    return (files("app.engine.models.react") / f"{name}.md").read_text(encoding="utf-8").strip()


def system_prompt(given: str, tools: tuple[ToolDefinition, ...]) -> str:
    """What was given, then how tools are called; without tools nothing is added."""
    if not tools:
        return given
    protocol = Template(text("protocol")).safe_substitute(tools="\n".join(map(_definition, tools)))
    return f"{given}\n\n{protocol}" if given else protocol


def _definition(tool: ToolDefinition) -> str:
    parameters = msgspec.json.encode(tool.parameters).decode()
    return (
        f"<tool>\n<name>{tool.name}</name>\n<description>{escape(tool.description)}</description>\n"
        f"<parameters>\n{parameters}\n</parameters>\n</tool>"
    )
