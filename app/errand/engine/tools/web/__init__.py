"""The tool `web_fetch`: gets a page over HTTP as text. It runs no scripts; `browser` does.

Start at fetch.py; download.py connects, page_text.py converts.
"""
