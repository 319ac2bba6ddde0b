"""The command line, part by part; mirrors app/errand/cli."""
