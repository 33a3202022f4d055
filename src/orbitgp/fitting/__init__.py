"""Fitting a model: the loop, its checkpoints, signals, locks and devices."""
