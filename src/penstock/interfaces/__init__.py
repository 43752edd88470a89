"""7. Ways in: the command line."""
