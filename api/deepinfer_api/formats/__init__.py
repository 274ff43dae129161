"""Generated pieces -> the JSON of one protocol each."""
