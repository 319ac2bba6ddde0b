"""What all parts of the engine use: errors, model messages, ids, cancel signal, settings, secrets, health.

Imports nothing else of the engine. Start at messages.py and errors.py.
"""
