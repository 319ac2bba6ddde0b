"""The terminal client.

Arrows: main > commands > recovery > follow > rendering > terminal. Start with main.py, then commands/run.py.
"""
