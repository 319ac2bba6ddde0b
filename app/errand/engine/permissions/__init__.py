"""The permission policy: what tool calls, commands, paths and web addresses may do.

agent/run asks it and stores grants. Start at policy.py; for commands go on to command_policy.py, for paths to
files/file_policy.py.
"""
