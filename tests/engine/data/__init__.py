"""Export, import, removal."""
