"""The data directory: export, import, replay, disk errors, unusual folders."""
