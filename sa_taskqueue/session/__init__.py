"""The unit-of-work side: tasks are rows of the caller's own transaction."""
