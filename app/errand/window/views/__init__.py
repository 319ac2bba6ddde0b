"""All views except the transcript, one folder per part of the window.

Views paint and call a store's intents; state lives in `stores`. Start with shell/main_window.py.
"""
