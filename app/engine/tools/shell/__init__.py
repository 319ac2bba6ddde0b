"""The tool `shell`: one command line, its output and its environment.

Ending processes is tools/processes. Start at tool.py.
"""
