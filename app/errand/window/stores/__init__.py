"""The engine's state as Qt objects, fed by events alone; intents of views become calls here.

No widgets. Start with stores.py (the switch over events) and session.py.
"""
