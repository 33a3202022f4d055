"""From the files of runs to tables and verdicts on the paper's claims. Loads no TensorFlow."""
