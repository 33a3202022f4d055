"""Steps: natural ones for q, Adam for the rest, which images they take, and how rates fall."""
