"""Training: steps, schedules, checkpoints, and the loop that ties them together."""
