"""The terminal itself: styles, text width, Markdown, prompt. Knows nothing of tasks. Start with terminal.py."""
