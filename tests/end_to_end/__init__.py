"""Whole behaviours on real processes, in folders by feature. One part alone is tested in the folder of its package."""
