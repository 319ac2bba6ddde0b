"""The runner: starts, rounds, comparisons, races."""
