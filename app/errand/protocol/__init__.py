"""The protocol between the engine and its clients: plain frozen structs. Imports no other package of the project."""
