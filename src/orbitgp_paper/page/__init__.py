"""The results of a size for readers: one HTML page, the first page of Snakemake's report, and an article."""
