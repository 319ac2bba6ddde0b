"""The process `errand share-models`: serves models to engines of other machines, keys stay here. Start at server.py."""
