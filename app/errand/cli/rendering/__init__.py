"""Renders events, tool calls and asks as text. Pure; `terminal` writes it. Start with transcript.py."""
