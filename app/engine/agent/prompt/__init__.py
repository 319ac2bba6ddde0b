"""The system prompt of a task and its parts (role, instructions, skills, workspace).

What is said afterwards is history. Start at system_prompt.py.
"""
