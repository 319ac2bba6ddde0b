"""The terminal client.

Imports point one way: main > commands > recovery > follow > rendering > command > terminal. Start with main.py, then
commands/run.py. A new command is a function with a struct of options in its module, and one line in main.py's table.
"""
