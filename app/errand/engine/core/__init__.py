"""Shared basics of the engine: errors, model messages, ids, cancel signal, settings, secrets, health.

Imports nothing else of the engine. Start at messages.py and errors.py.
"""
