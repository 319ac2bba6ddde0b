"""One open conversation: nodes to rows, commands, branches, paging, find.

Lists over all conversations are in the folder above. Start with store.py.
"""
