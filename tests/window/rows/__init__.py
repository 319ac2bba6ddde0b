"""Row views one by one, including Markdown, asks and tools."""
