"""The data directory: export, import, replay, disks that fail, unusual folders."""
