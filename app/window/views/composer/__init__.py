"""Where a person writes: the input panel and its parts.

Sending is stores/conversation/commands.py. Start with input_panel.py.
"""
