"""Features of a task that look at what the model replies: calls that need repair, missing answers, repetitions.

Start at call_repair.py. The wire is read by models/; what a call may do is decided by approvals.py.
"""
