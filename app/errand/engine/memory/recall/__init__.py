"""What a message is given unasked: entries that bear on it, with their questions and answers. Start at relevance.py."""
