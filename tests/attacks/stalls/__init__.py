"""Input from a model, a provider or a file that could block the engine: patterns, patches, commands."""
