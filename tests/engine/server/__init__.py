"""Handlers through the dispatcher and the socket."""
