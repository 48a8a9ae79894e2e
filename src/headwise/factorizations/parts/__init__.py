"""What factorizations are built of: heads, ranges, critics, values and how they are laid out."""
