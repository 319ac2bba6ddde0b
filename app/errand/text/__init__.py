"""Text as people read it: translation, printable and visible characters, removal of keys, the sentences of notices.

Start at `translation.py` (`tr`) and `redaction.py`. Nothing here opens a file of a person or a socket; that is
`errand.system`, which may import this package and never the other way round.
"""
