"""Row views one by one, and Markdown, asks and tools in them."""
