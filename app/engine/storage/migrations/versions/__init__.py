"""One revision a file, frozen once released: names and texts in them are never changed."""
