"""The tool `shell`: one command line, its output and its environment.

tools/processes ends the processes. Start at tool.py.
"""
