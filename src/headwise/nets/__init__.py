"""Networks that factorizations share."""
