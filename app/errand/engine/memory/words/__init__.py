"""The words of entries and questions: spellings, stop words, identifiers, and the hits of full text in hits.py."""
