"""What all factorizations are made of: the layout of an action, and what networks are built from."""
