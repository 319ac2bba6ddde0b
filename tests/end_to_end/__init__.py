"""Whole behaviours on real processes, in folders by feature.

Tests of a single part are in the folder of its package.
"""
