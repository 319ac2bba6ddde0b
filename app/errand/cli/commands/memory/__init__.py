"""`errand memory`: start at facts.py, which has the command; index.py searches and mends, forgetting.py forgets."""
