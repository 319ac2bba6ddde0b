"""The process `errand share-models`: serves models to engines on other machines without its keys. Start at
server.py."""
