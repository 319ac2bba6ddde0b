"""The tool `python`: a Python session for each conversation.

tool.py is the tool, session.py the process seen from the engine, session_child.py the program inside it.
"""
