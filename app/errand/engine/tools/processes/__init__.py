"""Child processes of tools: start, mark, find, terminate, and the watchdog that outlives the engine.

Start at termination.py.
"""
