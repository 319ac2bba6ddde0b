"""Export, import and deletion of conversations, and the content of the data folder.

Start at importer.py, json_export.py or remover.py.
"""
