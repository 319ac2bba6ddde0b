"""Tool calls in the transcript: `tool_call.py` is the row, `line.py` its line, `card.py` what a click opens."""
