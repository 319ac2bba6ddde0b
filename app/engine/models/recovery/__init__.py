"""What follows when a provider fails: a retry, another form of the request, another model.

Start at driver.py; table.py says which step follows which failure.
"""
