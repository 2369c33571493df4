"""The loop that claims tasks, runs their handlers and finishes them."""
