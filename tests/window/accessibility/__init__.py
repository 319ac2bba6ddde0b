"""Every view by keyboard, by screen reader and in both themes; views.py lists them."""
