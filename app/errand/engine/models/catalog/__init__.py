"""Which providers and models exist and what is known of them: rows, prices, lists.

Makes no model calls. Start at providers.py.
"""
