"""The published study: its plans, its numbers and claims, and what a report adds for it."""
