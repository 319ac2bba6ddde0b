"""Events, tool calls and asks as text. Pure; writing it is `terminal`. Start with transcript.py."""
