"""What updates minimise, each loss with its gradient."""
