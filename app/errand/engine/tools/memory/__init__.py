"""The tools of memory: search it, and propose a fact for every task."""
