"""Real parts for tests: servers, engines, windows, disks and buses, each started by a test and ended with it.

No assertions. Start with engine_parts.py and model_server.py.
"""
