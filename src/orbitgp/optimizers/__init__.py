"""Training steps: natural gradients for q, Adam for the rest, batches, and schedules of rates."""
