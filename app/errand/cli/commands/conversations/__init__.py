"""Commands on conversations: listing.py lists and arranges them, show.py prints one, branches.py goes on elsewhere.

search.py searches all of them; data.py exports and deletes, imports.py takes in.
"""
