"""The tool `browser`: one browser process for the engine, one window for each conversation.

Start at tool.py. session.py is what a conversation keeps, window.py has its pages, process.py the browser.
sandbox/http_proxy.py judges every connection of a page.
"""
