"""The files of a run: written by a training, read by tables and figures."""
