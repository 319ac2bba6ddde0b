"""Changes of files by tasks, each recorded before it is made, so that it can be undone."""

# Contents that have no bytes: there is no file, or there is a folder.
NOTHING = ""
FOLDER = "folder"
