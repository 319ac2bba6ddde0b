"""A branch of a conversation: writing nodes, converting them to model messages, who takes part.

What fits into a request is compaction's. Start at conversion.py.
"""
