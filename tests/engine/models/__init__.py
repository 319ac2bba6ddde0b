"""Models over real HTTP; streams/ has replies as providers document them."""
