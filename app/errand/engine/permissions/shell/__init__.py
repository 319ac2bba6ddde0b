"""Reading shell commands: a tolerant scanner, nested code, files named, the strict parse. Start at scanner.py."""
