"""File-size arithmetic: how many bytes a record takes, how many files a run of records makes."""
