"""Stores of vectors behind one interface. Start with base.py; embedded.py is on this machine, server.py by URL."""
