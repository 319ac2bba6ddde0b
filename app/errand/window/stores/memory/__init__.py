"""What the window knows of memory: its entries and state, facts, the embedding model, folders that share it."""
