"""What all factorizations are made of: the layout of an action, and blueprints of networks."""
