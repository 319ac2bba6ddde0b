"""A branch of a conversation: writing nodes, converting them to model messages, its participants.

Fitting them into a request belongs to compaction. Start at conversion.py.
"""
