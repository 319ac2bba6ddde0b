"""Plain controls that know the theme and nothing of tasks or conversations.

Views of this application are in `views`.
"""
