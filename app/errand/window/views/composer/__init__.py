"""The input panel below the transcript and its parts. Sending is stores/conversation/commands.py.

Start with input_panel.py.
"""
