"""The process `errand share-models`: serves models to other machines; the keys stay on this one. Start at server.py."""
