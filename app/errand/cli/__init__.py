"""The terminal client.

Imports point one way: main > commands > recovery > follow > rendering > command > output > terminal. Start with main.py
and commands/run.py. A new command is a function with a struct of options in its module, and one line in table.py; it
prints through output.py, which makes text for a person and JSON for a program of each result.
"""
