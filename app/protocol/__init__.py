"""The one protocol between the engine and its faces: plain frozen structs, nothing else of ours is imported here."""
