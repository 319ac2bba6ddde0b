"""The retrieval benchmark: invented work histories with questions, and what is measured on them."""
