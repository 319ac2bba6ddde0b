"""How widgets take keys, clicks and the pointer: fields with Ctrl+Enter, the time to see an ask, the hovered widget.

Start at reaction_time.py. Widgets themselves are in the package above.
"""
