"""Everything a person sees beside the transcript, in one folder per part of the window.

Views paint and call a store's intents; state lives in `stores`. Start with shell/main_window.py.
"""
