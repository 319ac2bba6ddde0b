"""What follows a failed attempt: retry, another form of the request, another model.

Classifying a failure is models/failures.py. Start at retry.py.
"""
