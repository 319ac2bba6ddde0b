"""The model of a conversation, which every client shares: what it makes of nodes, tasks, asks, events and deltas.

No Qt, no terminal. Start at branch_rows.py: the rows of a branch, with each change. `rows.py` has the rows as data.
"""
