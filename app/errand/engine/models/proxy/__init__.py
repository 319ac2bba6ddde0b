"""Models of another machine that shares them: client, wire format, encoder and decoder.

The serving side is engine/sharing. Start at wire.py.
"""
