"""Records of tasks and their replay."""
