"""Commands of one resource."""
