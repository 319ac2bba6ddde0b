"""The system prompt of a task and its parts (role, rules, instructions, skills, facts, workspace).

Later messages are in history. Start at system_prompt.py.
"""
