"""Ollama's own interface, which gives a model the window that a request asks for.

Its OpenAI-compatible interface takes no window and leaves out what is too long without a word. Start at `chat_api.py`.
"""
