"""The settings dialog: one file a page, built from what the engine declares."""
