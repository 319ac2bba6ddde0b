"""Failed attempts: retry, wait, fallback."""
