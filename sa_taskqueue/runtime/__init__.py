"""Runs store functions over an Engine or an AsyncEngine, and carries wake-ups."""
