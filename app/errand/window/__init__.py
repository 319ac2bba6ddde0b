"""The Qt window, one client of the engine among others.

Arrows: main > desktop > views > transcript, stores > rows > widgets > theme. Start with main.py, then
views/shell/main_window.py.
"""
