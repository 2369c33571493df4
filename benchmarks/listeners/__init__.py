"""Worker processes that note when each task starts: the library's and a peer's."""
