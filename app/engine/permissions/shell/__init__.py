"""Reading shell commands: a tolerant scanner, the code nested in commands, the strict parse. Start at scanner.py."""
