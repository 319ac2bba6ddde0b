"""Review: the files that tasks changed, their diffs, and undoing them."""
