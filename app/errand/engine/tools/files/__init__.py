"""Files of workspaces as all tools see them: names, real paths, walks, ignore rules. Start at file_walk.py."""
