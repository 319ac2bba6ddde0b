"""Models over real HTTP; streams/ holds replies as providers document them."""
