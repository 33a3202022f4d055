from orbitgp.datasets.random_streams import stream


def test_streams_are_fixed_by_purpose_and_by_seed() -> None:
    drawn = [stream(purpose, seed).integers(2**60) for purpose in ("a", "Ω", "a") for seed in (*range(50), 2**80)]
    assert drawn[:51] == drawn[102:]
    assert len(set(drawn)) == 102


def test_a_stream_is_the_same_for_ever() -> None:
    """A value written down: results that name a seed mean these very numbers, in every process."""
    assert stream("rotated/order", 0).integers(2**60) == 1063889899630087550
