"""The terminal: styles, text width, Markdown, prompt. Independent of tasks. Start with terminal.py."""
