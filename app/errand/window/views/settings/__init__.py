"""The settings dialog: one module per page, built from the settings that the engine declares."""
