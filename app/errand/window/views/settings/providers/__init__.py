"""The page of the providers: their rows, the form that adds one, and which of their models are offered."""
