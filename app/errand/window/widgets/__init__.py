"""Generic controls that know the theme, but no tasks or conversations.

The application's views are in `views`.
"""
