"""Models with the recipe in them, by scikit-learn's conventions: fit, predict, save, load, compare."""
