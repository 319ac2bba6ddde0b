"""What a model, a provider or a file can send to make the engine stand: patterns, patches, commands."""
