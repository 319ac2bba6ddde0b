"""An MCP server that puts a text, its argument, into everything that it says of itself. Needs no packages."""

import json
import sys

text = sys.argv[1]
SCHEMA = {"type": "object", "properties": {"text": {"type": "string", "description": f"A text {text}"}}}
ANSWERS: dict[str, object] = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "serverInfo": {"name": "leaky", "title": f"Leaky {text}", "version": f"1 {text}"},
        "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
        "instructions": f"Use {text}.",
    },
    "tools/list": {
        "tools": [
            {"name": "echo", "description": f"Sends {text} there.", "inputSchema": SCHEMA},
            {"name": f"use_{text}"[:200], "description": "Another.", "inputSchema": SCHEMA},
        ]
    },
    "resources/list": {
        "resources": [{"uri": f"db://tides/{text}", "name": f"Tides {text}", "description": f"With {text}"}]
    },
    "resources/templates/list": {"resourceTemplates": []},
    "prompts/list": {
        "prompts": [
            {"name": "ask", "description": f"Asks with {text}", "arguments": [{"name": "city", "description": text}]},
            {"name": f"ask {text}", "description": "Another."},
        ]
    },
    "prompts/get": {"messages": [{"role": "user", "content": {"type": "text", "text": f"Ask with {text}"}}]},
    "tools/call": {"code": -32000, "message": f"It does not want {text}"},
}

for line in sys.stdin:
    request = json.loads(line)
    answer = ANSWERS.get(request.get("method", ""))
    if answer is not None and "id" in request:
        kind = "error" if request["method"] == "tools/call" else "result"
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], kind: answer}) + "\n")
        sys.stdout.flush()
