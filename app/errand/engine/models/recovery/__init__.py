"""Recovery from provider failures: retries, adapted requests, fallback models.

Start at driver.py; table.py maps failures to steps.
"""
