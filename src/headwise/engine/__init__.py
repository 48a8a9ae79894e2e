"""The learners out of explicit operations, while they take the place of those before them."""
