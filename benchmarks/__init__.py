"""Rates of the library beside a floor: the same work by plain SQL through the same driver, no ORM, no handler.

``python -m benchmarks floor|enqueue|drain|latency|decay --url URL``. Floor and product alternate on the same table
with the same kind of finish, the median of the rounds counts, all rounds are printed, and a ratio below its aim is
reported as missed. Nothing here is a test: a rate depends on the machine and on what else it does.
"""
