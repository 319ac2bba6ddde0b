"""One revision per file. Names and SQL texts are frozen once released."""
