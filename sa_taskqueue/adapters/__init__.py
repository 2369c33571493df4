"""The only place where databases differ: types, clocks, statements and error codes, one file per database."""
