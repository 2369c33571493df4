"""The conformance suite over every combination of strategy, server and driver: `python -m tests.matrix`.

`expected.txt` lists the combinations that run, and why others do not. A run that has fewer fails and names them; one
that has more asks to write them there, by hand.
"""
