"""Unified diffs in text widgets: lines with numbers, gutter, colours, and the line above. Start with lines.py."""
