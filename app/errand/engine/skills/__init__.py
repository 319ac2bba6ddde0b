"""Skills: listing them, showing one before it is installed, installing, removing, switching off.

How they get into the system prompt is in agent/prompt. Start at skills.py.
"""
