"""Independent random numbers for every purpose, all of them fixed by one seed."""

import zlib

import numpy as np


def stream(purpose: str, seed: int) -> np.random.Generator:
    """Return the generator that belongs to a purpose and a seed.

    Each purpose has a stream of its own, so that, say, a larger training set leaves the test set as it was,
    and two data sets with the same seed share no angles.

    :param purpose: what the numbers are for, e.g. ``"parity/train"``. Its checksum enters the seed, because
        Python's own ``hash`` of a string differs between processes.
    :param seed: the user's seed, not negative.
    """
    return np.random.default_rng(np.random.SeedSequence([zlib.crc32(purpose.encode()), seed]))
