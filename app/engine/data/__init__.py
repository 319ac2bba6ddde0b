"""Conversations exported, imported and removed, and what the data folder holds.

Start at importer.py, json_export.py or remover.py.
"""
