import pytest

from orbitgp.estimators.sizes import ANCHORS, ON_CPU, ON_GPU, choose, recipe


def test_sizes_are_those_of_the_machine_as_far_as_the_images_go():
    assert choose(60_000, 60_000, gpu=False) == ON_CPU and choose(60_000, 60_000, gpu=True) == ON_GPU
    few = choose(90, 80, gpu=False)
    assert (few.inducing, few.batch) == (80, 90)
    assert choose(60_000, 60_000, gpu=False, steps=7, draws=32, batch=None).steps == 7
    assert choose(40, 40, gpu=False, batch=100).batch == 40


@pytest.mark.parametrize(
    ("given", "message"),
    [({"steps": 0}, "steps"), ({"draws": 2}, "draws must be even and at least 4"), ({"inducing": 91}, "at most 90")],
)
def test_sizes_that_cannot_be_are_named(given, message):
    with pytest.raises(ValueError, match=message):
        choose(90, 90, gpu=False, **given)


@pytest.mark.parametrize("likelihood", ANCHORS)
def test_rates_are_the_anchors_at_their_steps_and_between_them_elsewhere(likelihood):
    short, long = ANCHORS[likelihood]

    def at(steps):
        return recipe(likelihood, choose(60_000, 60_000, gpu=False, steps=steps))

    for anchor in (short, long):
        found = at(anchor.steps)
        assert found.rates == pytest.approx(dict(anchor.rates))
        assert (found.natural.first, found.natural.last) == pytest.approx(anchor.natural)
    middle = at(round((short.steps * long.steps) ** 0.5))
    for name, rate in middle.rates.items():
        assert rate == pytest.approx((short.rates[name] * long.rates[name]) ** 0.5, rel=1e-2)
    assert at(10).rates == at(short.steps).rates and at(100_000).rates == at(long.steps).rates
    assert at(100).batches == "drawn" and at(5000).batches == "hard"
