"""Samples of the typed API for mypy and pyright; nothing here is run.

A line with `type: ignore` is an error that both must find: `warn_unused_ignores` and
`reportUnnecessaryTypeIgnoreComment` fail when one of them does not.
"""
