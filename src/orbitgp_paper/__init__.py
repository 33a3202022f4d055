"""The reproduction of the paper: configuration, experiments, run files, tables, claims and figures."""
