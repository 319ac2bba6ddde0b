"""The terminal client.

Imports point one way: main > commands > recovery > follow > rendering > terminal. Start with main.py, then
commands/run.py.
"""
