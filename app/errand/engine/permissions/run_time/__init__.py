"""What of a command line is known only when it runs, and whether that could be what a person denied.

Start at hidden_commands.py. It serves deny rules alone: what may run unasked is decided by the strict parse.
"""
