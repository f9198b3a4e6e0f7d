"""What each base file holds in each column, so that files without a match need not be read."""
