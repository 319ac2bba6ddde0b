"""Real parts for tests: servers, engines, windows, disks and buses, each started and ended by a test. No assertions.

Start with engine_parts.py and model_server.py.
"""
