"""The show of `sa-taskqueue demo`: orders, tasks, and workers of which one is killed, on a SQLite file of its own."""
