"""Files, locks, environment and other services of the system; mirrors app/errand/system."""
