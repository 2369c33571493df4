"""Task queue in the user's own database, filled in the user's own unit of work."""
