"""The configuration: what it accepts, what it refuses and with which words, and what it makes of a run."""

import copy
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from orbitgp_paper import config as configuration
from orbitgp_paper.config import ConfigError, Run

ROOT = Path(__file__).parents[3]
CONFIG = ROOT / "config"
SCHEMA = ROOT / configuration.SCHEMA
TIERS = ("smoke", "quick", "paper")
SMOKE = configuration.load("smoke", CONFIG)
NAN = float("nan")
MISSING = object()


@pytest.fixture(scope="module")
def quick() -> dict[str, Any]:
    return configuration.load("quick", CONFIG)


def changed(config: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    """A copy with the value at a key with slashes set, or taken out."""
    config = copy.deepcopy(config)
    *path, last = key.split("/")
    block = config
    for part in path:
        block = block.setdefault(part, {})
    if value is MISSING:
        del block[last]
    else:
        block[last] = value
    return config


def refusal(config: Any, source: str | Path = "config/quick.yaml") -> str:
    with pytest.raises(ConfigError) as error:
        configuration.check(config, source, SCHEMA)
    message = str(error.value)
    assert "\n" not in message
    assert message.startswith(str(source))
    return message


# ---- the three sizes ----


@pytest.mark.parametrize("tier", [*TIERS, "ablation"])
def test_sizes_are_accepted_and_every_run_resolves(tier):
    config = configuration.load(tier, CONFIG)
    found = configuration.runs(config)
    assert len(set(found)) == len(found)
    for run in found:
        spec = configuration.run_spec(config, run)
        assert json.loads(configuration.canonical(spec)) == json.loads(json.dumps(spec))


def test_sizes_have_the_same_experiments_and_variants():
    def names(config):
        return {name: list(block["variants"]) for name, block in config["experiments"].items()}

    smoke, quick, paper = (names(configuration.load(tier, CONFIG)) for tier in TIERS)
    assert smoke == quick
    assert set(quick) == set(paper) == {"parity", "mnist", "rotated"}
    assert all(set(quick[name]) <= set(paper[name]) for name in quick)
    more = {"rotation_plain", "fixed_plain", "affine_plain", "affine_parts"}
    assert set(paper["rotated"]) - set(quick["rotated"]) == more


def test_paper_size_is_the_papers():
    config = configuration.load("paper", CONFIG)
    assert config["datasets"]["mnist"] == {"kind": "mnist", "train": 60_000, "test": 10_000}
    assert (config["datasets"]["rotated"]["train"], config["datasets"]["rotated"]["test"]) == (12_000, 50_000)
    assert config["training"]["inducing"]["count"] == 750
    assert all(len(block["seeds"]) >= 3 for block in config["experiments"].values())


@pytest.mark.parametrize("tier", TIERS)
def test_parity_has_three_starts_for_either_angle(tier):
    variants = configuration.load(tier, CONFIG)["experiments"]["parity"]["variants"]
    for alpha in (90, 180):
        own = [block for block in variants.values() if block["dataset"] == f"parity{alpha}"]
        starts = {block["orbit"]["alpha"] for block in own if block["orbit"]["kind"] == "rotation"}
        assert len(starts) >= 3
        assert any(block["orbit"]["kind"] == "identity" for block in own)


# ---- loading ----


@pytest.mark.parametrize("tier", ["../quick", "nope", "claims", "paper_values", 3, None, "", "quick\n", "config/quick"])
def test_unknown_tier_names_those_there_are(tier):
    with pytest.raises(ConfigError, match=r"tier is .*; .*config has .*quick"):
        configuration.load(tier, CONFIG)


def test_folder_without_configurations(tmp_path):
    with pytest.raises(ConfigError, match="has no configuration"):
        configuration.load("quick", tmp_path)


@pytest.fixture()
def folder(tmp_path) -> Path:
    """A copy of the configurations with the schema where it is looked for."""
    shutil.copytree(CONFIG, tmp_path / "config")
    (tmp_path / configuration.SCHEMA).parent.mkdir(parents=True)
    shutil.copy(SCHEMA, tmp_path / configuration.SCHEMA)
    return tmp_path / "config"


def test_a_size_of_ones_own(folder):
    text = (folder / "quick.yaml").read_text().replace("tier: quick", "tier: mine")
    (folder / "mine.yaml").write_text(text)
    assert configuration.load("mine", folder)["tier"] == "mine"


def test_tier_must_be_the_files_name(folder):
    shutil.copy(folder / "quick.yaml", folder / "mine.yaml")
    with pytest.raises(ConfigError, match=r"mine\.yaml: tier is 'quick'; the file's name wants 'mine'"):
        configuration.load("mine", folder)


# nine lines of ten aliases each: a billion values, if they are written out
LAUGHS = "l0: &l0 lol\n" + "".join(f"l{i}: &l{i} [{', '.join(10 * [f'*l{i - 1}'])}]\n" for i in range(1, 10))
MERGED_LAUGHS = "m0: &m0 {a: 1, b: 2}\n" + "".join(
    f"m{i}: &m{i}\n  <<: [{', '.join(10 * [f'*m{i - 1}'])}]\n" for i in range(1, 10)
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tier: quick\ntier: smoke\n", "'tier' stands a second time in line 2"),
        ("training:\n  jitter: 1.0e-6\n  jitter: 1.0e-5\n", "'jitter' stands a second time in line 3"),
        ("tier: [quick\n", "is not YAML"),
        ("tier: !!python/object/apply:os.system [true]\n", "is not YAML"),
        ("1: 2\n", "must be a word"),
        ("on: 2\n", "must be a word"),
        ("", "must be a block of keys"),
        ("just words\n", "must be a block of keys"),
        ("a: &a\n  b: *a\n", "contains itself"),
        ("a: 2024-01-01\n", "a date"),
        ("\x00", "is not YAML"),
        ("a: !!int x\n", "is not YAML"),
        ("a: !!bool maybe\n", "is not YAML"),
        ("a: !!timestamp never\n", "is not YAML"),
        ("a: 2024-99-99\n", "is not YAML"),
        (f"a: {'9' * 9000}\n", "is not YAML"),
        (f"{'[' * 5000}\n", "is not YAML"),
        ("a: !!python/name:os.system\n", "is not YAML"),
        ("a: !!python/object/new:os.system [true]\n", "is not YAML"),
        ("#" * 1_000_001, "it has 1,000,001 bytes"),
        (LAUGHS, "more than 100,000 values"),
        (MERGED_LAUGHS, "more than 100,000 keys"),
    ],
    ids=lambda text: text[:20].encode("unicode_escape").decode(),
)
def test_text_that_is_no_configuration(folder, text, words):
    (folder / "quick.yaml").write_text(text)
    with pytest.raises(ConfigError, match=r"quick\.yaml") as error:
        configuration.load("quick", folder)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_bytes_that_are_no_text(folder):
    (folder / "quick.yaml").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(ConfigError, match="is not YAML"):
        configuration.load("quick", folder)


def test_file_that_cannot_be_read(folder):
    (folder / "mine.yaml").mkdir()
    with pytest.raises(ConfigError, match=r"mine\.yaml cannot be read"):
        configuration.load("mine", folder)


def test_merge_keys_may_stand_beside_own(tmp_path):
    file = tmp_path / "x.yaml"
    file.write_text("a: &a {x: 1, y: 2}\nb:\n  <<: *a\n  y: 3\n")
    assert configuration.read_yaml(file)["b"] == {"x": 1, "y": 3}


# ---- checking ----


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        # numbers that are none, or not finite
        ("training/optimiser/rates/orbit", "1e-3", ["rates.orbit = '1e-3'", "a string to YAML", "write 0.001"]),
        ("training/jitter", "1e-6", ["training.jitter = '1e-6'", "write 1.0e-06"]),
        ("training/optimiser/steps", "400", ["a string to YAML", "write 400;", "a whole number"]),
        ("training/optimiser/steps", "4e2", ["write 400;"]),
        ("training/optimiser/steps", "0.5", ["write 0.5;", "a whole number"]),
        ("training/kernel/variance", "2\x1f", ["write 2.0;"]),  # a space to some parts of Python, to others none
        ("training/kernel/variance", "1e999", ["training.kernel.variance = '1e999' must be a number"]),
        ("training/kernel/variance", "much", ["training.kernel.variance = 'much'", "a number above 0"]),
        ("training/optimiser/rates/orbit", NAN, ["rates.orbit is nan", "finite"]),
        ("training/optimiser/rates/orbit", float("inf"), ["rates.orbit is inf", "finite"]),
        ("training/optimiser/rates/orbit", True, ["rates.orbit = True", "a number"]),
        ("training/optimiser/rates/orbit", None, ["rates.orbit is empty"]),
        ("insensitivity/thresholds", [0.1, NAN], ["insensitivity.thresholds.1 is nan"]),
        # out of range
        ("training/optimiser/rates/orbit", -0.1, ["at least 0"]),
        ("training/optimiser/steps", 0, ["at least 1"]),
        ("training/optimiser/steps", -5, ["at least 1"]),
        ("training/optimiser/steps", 10**30, ["at most"]),
        ("training/optimiser/steps", 6.0, ["steps = 6.0", "a whole number"]),
        ("training/optimiser/steps", True, ["steps = True", "a whole number"]),
        ("training/kernel/variance", 0, ["above 0"]),
        ("training/kernel/lengthscale", 1e300, ["at most"]),
        ("training/likelihood/variance", 1e-7, ["above 1e-06"]),
        ("training/optimiser/warmup", 1.5, ["at most 1"]),
        ("training/final_pass/samples", 3, ["a multiple of 2"]),
        ("datasets/mnist/train", 60_001, ["datasets.mnist.train = 60001", "at most 60000"]),
        ("datasets/parity90/alpha", 181, ["at most 180"]),
        ("datasets/parity90/alpha", 0, ["above 0"]),
        ("datasets/rotated/train", 69_500, ["datasets.rotated.train + test = ", "at most 70000"]),
        ("datasets/mnist/seed", 0, ["datasets.mnist.seed", "no key here"]),
        ("datasets/parity90/seed", -1, ["at least 0"]),
        ("datasets/parity90/seed", 2**31, ["at most"]),
        ("toy/train", 1, ["at least 4"]),
        ("estimators/samples", [2, 3], ["estimators.samples.1 = 3", "a multiple of 2"]),
        ("estimators/samples", [], ["estimators.samples is empty"]),
        ("estimators/repeats", 1, ["at least 2"]),
        # keys
        ("training/optimiser/stepz", 3, ["training.optimiser.stepz = 3", "did you mean steps?"]),
        ("learning_rate", 0.1, ["learning_rate = 0.1", "no key here"]),
        ("experiments/mnist/variants/rbf/seeds", [0], ["variants.rbf.seeds", "no key here"]),
        ("training", MISSING, ["training is missing"]),
        ("training", [], ["training = []", "a block of keys"]),
        ("tier", MISSING, ["tier is missing"]),
        ("tier", 3, ["tier = 3", "a name"]),
        ("training/inducing", MISSING, ["training.inducing is missing", "after merging"]),
        ("training/optimiser/natural/last", MISSING, ["optimiser.natural.last is missing"]),
        ("experiments/mnist", MISSING, ["experiments.mnist is missing"]),
        ("experiments/mnist/variants", {}, ["experiments.mnist.variants is empty"]),
        ("experiments/mnist/seeds", [], ["experiments.mnist.seeds is empty"]),
        ("experiments/mnist/seeds", [0, 0], ["experiments.mnist.seeds = [0, 0]", "0 more than once"]),
        ("experiments/mnist/seeds", [0, -1], ["experiments.mnist.seeds.1 = -1"]),
        ("experiments/mnist/seeds", 0, ["experiments.mnist.seeds = 0", "a list"]),
        ("experiments/mnist/variants/rbf/label", "two\nlines", ["without control characters"]),
        ("experiments/mnist/variants/rbf/label", "x" * 61, ["at most 60"]),
        ("experiments/mnist/variants/rbf/label", "", ["rbf.label"]),
        ("experiments/mnist/variants/rbf/label", 3, ["rbf.label = 3"]),
        # words
        ("training/precision", "float16", ["one of mixed, float64"]),
        ("training/compile", "yes", ["true or false"]),
        ("training/inducing/method", "random", ["one of kmeans, greedy"]),
        ("training/scheme/sampler", "halton", ["one of sobol, iid"]),
        ("training/optimiser/batches", "sorted", ["one of drawn, shuffled, hard"]),
        ("training/optimiser/inducing_scale", "pixel", ["one of element, row"]),
        ("training/likelihood/kind", "softmax", ["one of gaussian, polya_gamma"]),
        ("datasets/mnist/kind", "cifar", ["one of mnist, parity, rotated, images"]),
        # references
        ("experiments/mnist/variants/rbf/dataset", "minst", ["rbf.dataset = 'minst'", "did you mean mnist?"]),
        ("experiments/mnist/variants/rbf/dataset", 7, ["rbf.dataset = 7"]),
        ("samples/experiment", "parity9", ["samples.experiment = 'parity9'", "must be one of"]),
        ("samples/variant", "afine", ["samples.variant = 'afine'", "did you mean affine?"]),
        ("samples/seed", 7, ["samples.seed = 7", "one of the seeds of mnist"]),
        ("samples/digits", 0, ["at least 1"]),
        ("insensitivity/variants", ["rbf", "rbf"], ["'rbf' more than once"]),
        ("insensitivity/variants", ["rbf", "bend"], ["insensitivity.variant = 'bend'"]),
        ("insensitivity/seed", 99, ["insensitivity.seed = 99"]),
        ("insensitivity/images", 9, ["at least 10"]),
        ("insensitivity/images", 10**6, ["insensitivity.images = 1000000 must be at most", "the test images of mnist"]),
        ("estimators/order", 4, ["must be at most estimators.order = 4"]),
        ("training/optimiser/batch", 10**6, ["optimiser.batch = 1000000 must be at most"]),
        ("training/inducing/count", 9_999, ["inducing.count = 9999 must be at most"]),
        ("training/evaluation/count", 10**6, ["evaluation.count = 1000000 must be at most optimiser.steps"]),
        (
            "training/optimiser/natural",
            {"first": 0.1, "last": 0.2, "scale": "ceiling"},
            ["natural.last = 0.2 must be at most first = 0.1"],
        ),
        (
            "experiments/parity/training/likelihood",
            {"kind": "gaussian", "variance": 0.1},
            ["polya_gamma is for parity"],
        ),
        ("experiments/mnist/variants/rbf/dataset", "parity90", ["does not fit a dataset of kind 'parity'"]),
        # names that are paths or taken
        ("datasets/..", {"kind": "mnist", "train": 1, "test": 1}, ["datasets has the key '..'", "small letters"]),
        ("datasets/mnist\n", {"kind": "mnist", "train": 1, "test": 1}, ["'mnist\\n'", "small letters"]),
        ("datasets/MNIST", {"kind": "mnist", "train": 1, "test": 1}, ["'MNIST'"]),
        ("datasets/" + "x" * 61, {"kind": "mnist", "train": 1, "test": 1}, ["at most 60"]),
        ("datasets/mnist/folder", "a\x00b", ["control characters"]),
        ("datasets/mnist/folder", "", ["datasets.mnist.folder"]),
    ],
)
def test_refused(quick, key, value, words):
    message = refusal(changed(quick, key, value))
    for word in words:
        assert word in message


@pytest.mark.parametrize("name", ["..", "a/b", "a b", "", "A", "1a", "a-b", "a.b", "~", "ä", "$x", "{x}"])
def test_names_that_could_be_paths_or_wildcards(quick, name):
    for block in ("datasets", "experiments"):
        config = copy.deepcopy(quick)
        config[block][name] = next(iter(config[block].values()))
        assert "small letters" in refusal(config)
    config = copy.deepcopy(quick)
    config["experiments"]["mnist"]["variants"][name] = config["experiments"]["mnist"]["variants"]["rbf"]
    assert "small letters" in refusal(config)


@pytest.mark.parametrize("name", configuration.RESERVED)
def test_names_of_other_tables_are_taken(quick, name):
    assert "name that is taken" in refusal(changed(quick, f"experiments/{name}", quick["experiments"]["mnist"]))


@pytest.mark.parametrize(
    ("orbit", "words"),
    [
        ({}, "orbit.kind is missing"),
        ({"kind": "afine"}, "one of identity, rotation, affine"),
        ({"kind": "identity", "alpha": 3}, "orbit.alpha = 3 is no key here"),
        ({"kind": "rotation"}, "orbit.alpha is missing"),
        ({"kind": "rotation", "alpha": 181}, "at most 180"),
        ({"kind": "rotation", "alpha": "20°"}, "a number"),
        ({"kind": "rotation", "alpha": 20, "trainable": "no"}, "true or false"),
        ({"kind": "affine"}, "orbit.spread is missing"),
        ({"kind": "affine", "spread": -1}, "at least 0"),
        ({"kind": "affine", "lower": [0] * 6}, "orbit.upper is missing"),
        ({"kind": "affine", "lower": [0] * 5, "upper": [1] * 6}, "a list of 6 entries"),
        ({"kind": "affine", "lower": [0] * 6, "upper": [1] * 6, "spread": 0.1}, "orbit.spread = 0.1 is no key here"),
        ({"kind": "interpretable_affine", "lower": [0] * 6, "upper": [1] * 6}, "a list of 7 entries"),
        ({"kind": "local", "deformation": 0.1, "thickening": 0.1}, "orbit.generators is missing"),
        ({"kind": "local", "deformation": 0.1, "thickening": 0.1, "generators": [0.1] * 5}, "a list of 6 entries"),
        ({"kind": "local", "deformation": 0.1, "thickening": 0.1, "generators": "0.1"}, "a string to YAML"),
        ({"kind": "local", "deformation": -0.1, "thickening": 0.1, "generators": 0.1}, "at least 0"),
        ({"kind": "local", "deformation": 0.1, "thickening": 0.1, "generators": 0.1, "mode": "bend"}, "warp, tangent"),
        ({"kind": "quantised_rotation", "order": 0}, "at least 1"),
        ({"kind": "quantised_rotation", "order": 2.5}, "a whole number"),
        ({"kind": "composed", "parts": []}, "orbit.parts is empty"),
        ({"kind": "composed", "parts": [{"kind": "rotation", "alpha": -1}]}, "orbit.parts.0.alpha = -1"),
        ("rotation", "a block of keys"),
    ],
)
def test_orbits_that_are_refused(quick, orbit, words):
    assert words in refusal(changed(quick, "experiments/mnist/variants/affine/orbit", orbit))


ORBITS = [
    {"kind": "identity"},
    {"kind": "right_angles"},
    {"kind": "quantised_rotation", "order": 8},
    {"kind": "rotation", "alpha": 0},
    {"kind": "rotation", "alpha": 180.0, "trainable": False},
    {"kind": "affine", "spread": 0.1},
    {"kind": "affine", "lower": [-1] * 6, "upper": [1.0] * 6},
    {"kind": "interpretable_affine", "spread": 0.1, "trainable": False},
    {"kind": "interpretable_affine", "lower": [0] * 7, "upper": [1] * 7},
    {"kind": "local", "deformation": 0.1, "generators": [0.1] * 6, "thickening": 0, "mode": "tangent"},
    {"kind": "composed", "parts": [{"kind": "rotation", "alpha": 10}, {"kind": "affine", "spread": 0.1}]},
]


@pytest.mark.parametrize("orbit", ORBITS)
def test_orbits_that_are_accepted(quick, orbit):
    configuration.check(changed(quick, "experiments/mnist/variants/affine/orbit", orbit), "a test", SCHEMA)


@pytest.mark.parametrize(
    ("orbit", "scheme", "words"),
    [
        ({"kind": "affine", "spread": 0.1}, {"kind": "full"}, "needs an orbit that can be listed"),
        ({"kind": "affine", "spread": 0.1}, {"kind": "without_replacement", "count": 2}, "needs an orbit"),
        ({"kind": "right_angles"}, {"kind": "without_replacement", "count": 5}, "at most 4"),
        ({"kind": "right_angles"}, {"kind": "without_replacement", "count": 1}, "at least 2"),
        ({"kind": "quantised_rotation", "order": 3}, {"kind": "without_replacement", "count": 4}, "at most 3"),
        ({"kind": "right_angles"}, {"kind": "without_replacement"}, "scheme.count is missing"),
        ({"kind": "right_angles"}, {"kind": "full", "count": 2}, "scheme.count = 2 is no key here"),
        ({"kind": "right_angles"}, {"kind": "paper", "samples": 1}, "at least 2"),
        ({"kind": "right_angles"}, {"kind": "groups", "groups": 1, "size": 8, "sampler": "sobol"}, "at least 2"),
    ],
)
def test_schemes_that_do_not_fit_are_refused(quick, orbit, scheme, words):
    config = changed(quick, "experiments/mnist/variants/affine/orbit", orbit)
    assert words in refusal(changed(config, "experiments/mnist/variants/affine/training", {"scheme": scheme}))


@pytest.mark.parametrize(
    ("orbit", "scheme"),
    [
        ({"kind": "right_angles"}, {"kind": "full"}),
        ({"kind": "right_angles"}, {"kind": "without_replacement", "count": 4}),
        ({"kind": "identity"}, {"kind": "without_replacement", "count": 1}),
        ({"kind": "quantised_rotation", "order": 16}, {"kind": "without_replacement", "count": 4}),
        ({"kind": "rotation", "alpha": 20}, {"kind": "paper", "samples": 8}),
    ],
)
def test_schemes_that_fit_are_accepted(quick, orbit, scheme):
    config = changed(quick, "experiments/mnist/variants/affine/orbit", orbit)
    config = changed(config, "experiments/mnist/variants/affine/training", {"scheme": scheme})
    configuration.check(config, "a test", SCHEMA)
    seed = config["experiments"]["mnist"]["seeds"][0]
    assert configuration.run_spec(config, Run("mnist", "affine", seed))["scheme"] == scheme


def test_likelihoods_take_their_own_keys_only(quick):
    key = "experiments/parity/training/likelihood"
    assert "hidden is missing" in refusal(changed(quick, key, {"kind": "polya_gamma", "tilt": "network"}))
    assert "hidden" in refusal(changed(quick, key, {"kind": "polya_gamma", "tilt": "table", "hidden": [3]}))
    assert "tilt is missing" in refusal(changed(quick, key, {"kind": "polya_gamma"}))
    configuration.check(changed(quick, key, {"kind": "polya_gamma", "tilt": "groups"}), "a test", SCHEMA)
    configuration.check(changed(quick, key, {"kind": "polya_gamma", "tilt": "network", "hidden": []}), "x", SCHEMA)


def test_an_experiment_of_ones_own(quick):
    config = changed(quick, "datasets/own", {"kind": "images", "path": "my.npz", "test_fraction": 0.2, "seed": 0})
    block = {"seeds": [3], "variants": {"one": {"dataset": "own", "orbit": {"kind": "identity"}, "label": "Ω & |"}}}
    config = changed(config, "experiments/own", block)
    configuration.check(config, "a test", SCHEMA)
    assert configuration.runs(config)[-1] == Run("own", "one", 3)
    assert "test_fraction" in refusal(changed(config, "datasets/own/test_fraction", 1.0))
    assert "path is missing" in refusal(changed(config, "datasets/own/path", MISSING))


def test_check_leaves_the_configuration_alone(quick):
    before = copy.deepcopy(quick)
    configuration.check(quick, "a test", SCHEMA)
    assert quick == before


def test_schema_that_is_missing(quick, tmp_path):
    with pytest.raises(ConfigError, match=r"none\.yaml cannot be read"):
        configuration.check(quick, "a test", tmp_path / "none.yaml")


def test_source_need_not_be_a_file(quick):
    configuration.check(quick, "--config", SCHEMA)
    assert refusal(changed(quick, "tier", "Mine"), "--config").startswith("--config: tier = 'Mine'")


@settings(max_examples=150, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["tier", "datasets", "training", "experiments", "toy", "kind", "mnist"])
                | st.text(max_size=3)
                | st.integers(),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_anything_else_is_refused_in_one_line(config):
    assert refusal(config, "here")


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_single_value_of_another_kind_is_refused_or_accepted_in_order(data):
    """Whatever stands in one place, the answer is a ConfigError of one line or a configuration whose runs resolve."""
    config = copy.deepcopy(SMOKE)
    block: Any = config
    while True:
        key = data.draw(st.sampled_from(sorted(block) if isinstance(block, dict) else list(range(len(block)))))
        if isinstance(block[key], dict | list) and block[key] and data.draw(st.booleans()):
            block = block[key]
        else:
            break
    block[key] = data.draw(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.just({}) | st.just([])
    )
    try:
        configuration.check(config, "here", SCHEMA)
    except ConfigError as error:
        assert "\n" not in str(error)
    else:
        for run in configuration.runs(config):
            configuration.canonical(configuration.run_spec(config, run))


PIECES = (
    *("a", "b", ":", "-", "&", "*", "&x", "*x", "<<", "[", "]", "{", "}", ",", "|", ">", "'", '"', "#", "%", "@", "?"),
    *("!!int", "!!float", "!!bool", "!!set", "!!binary", "!!timestamp", "!!omap", "!!python/none", "---", "\\x"),
    *("1", "1e3", ".inf", "0x", "1:2", "~", "yes", "2001-1-1", " ", "  ", "\n", ": "),
)
TEXT = st.sampled_from(PIECES) | st.text(max_size=2)


@settings(max_examples=400, deadline=None)
@given(st.lists(TEXT, max_size=25).map("".join))
def test_any_text_is_read_or_refused_in_one_line(tmp_path_factory, text):
    file = tmp_path_factory.mktemp("any") / "any.yaml"
    file.write_text(text, encoding="utf-8", errors="surrogatepass")
    try:
        content = configuration.read_yaml(file)
        configuration.check(content, "here", SCHEMA)
    except ConfigError as error:
        assert len(str(error).splitlines()) == 1


@pytest.mark.parametrize(
    "value", [10**400, -(10**400), 1e308, -1e308, 5e-324, 2**63, "9" * 5000, "1_", "1e999", "../x"]
)
def test_any_number_that_is_too_much_is_refused_in_one_line(value):
    """In the place of every number of the smoke size; a few are right in some places, such as a tiny jitter."""
    refused = 0
    for key in numbers(SMOKE):
        try:
            configuration.check(changed(SMOKE, key, value), "here", SCHEMA)
        except ConfigError as error:
            assert len(str(error).splitlines()) == 1 and len(str(error)) < 1000
            refused += 1
    assert refused > 30


@pytest.mark.parametrize(
    ("key", "shown"), [("a\nb", r"toy.'a\nb' = 1"), ("a" * 5000, "toy.'aaaaaaa")], ids=["line", "long"]
)
def test_keys_that_would_fill_the_screen_are_shown_short(key, shown):
    message = refusal(changed(SMOKE, f"toy/{key}", 1))
    assert f"{shown}" in message and "is no key here" in message and len(message) < 1000


def numbers(block: Any, at: str = "") -> list[str]:
    """The keys of all numbers, with slashes."""
    if isinstance(block, dict):
        return [key for name, value in block.items() for key in numbers(value, f"{at}/{name}".lstrip("/"))]
    return [at] if isinstance(block, int | float) and not isinstance(block, bool) else []


# ---- runs and their specifications ----


def test_runs_come_in_the_order_of_the_file(quick):
    found = configuration.runs(quick)
    assert [run.experiment for run in found] == sorted(
        (run.experiment for run in found), key=list(quick["experiments"]).index
    )
    own = [run.seed for run in found if (run.experiment, run.variant) == ("mnist", "rbf")]
    assert own == quick["experiments"]["mnist"]["seeds"]


def test_run_folder():
    assert Run("mnist", "rbf", 3).folder(Path("results/quick")) == Path("results/quick/runs/mnist/rbf/seed3")


def test_spec_has_all_that_decides_and_nothing_else(quick):
    spec = configuration.run_spec(quick, Run("mnist", "affine", 0))
    assert set(spec) == {
        *("experiment", "variant", "label", "seed", "dataset", "orbit", "likelihood", "kernel", "inducing"),
        *("scheme", "precision", "compile", "jitter", "optimiser", "final_pass", "evaluation"),
    }
    assert spec["dataset"]["name"] == "mnist"
    assert spec["orbit"]["trainable"] is True
    assert "variational" not in spec["optimiser"]["rates"]


@pytest.mark.parametrize(
    "run",
    [Run("mnst", "rbf", 0), Run("mnist", "rbff", 0), Run("mnist", "rbf", 99), Run("mnist", "rbf", -1)],
)
def test_spec_of_a_run_that_is_not(quick, run):
    with pytest.raises(ConfigError):
        configuration.run_spec(quick, run)


def test_variant_over_experiment_over_file(quick):
    config = changed(
        quick, "training/optimiser/rates", {"inducing": 0.1, "kernel": 0.2, "likelihood": 0.3, "orbit": 0.4}
    )
    config = changed(config, "experiments/mnist/training", {"optimiser": {"rates": {"kernel": 0.02, "orbit": 0.04}}})
    config = changed(config, "experiments/mnist/variants/affine/training", {"optimiser": {"rates": {"orbit": 0.004}}})
    configuration.check(config, "a test", SCHEMA)
    rates = configuration.run_spec(config, Run("mnist", "affine", 0))["optimiser"]["rates"]
    assert rates == {"inducing": 0.1, "kernel": 0.02, "likelihood": 0.3, "orbit": 0.004}
    other = configuration.run_spec(config, Run("mnist", "local", 0))["optimiser"]["rates"]
    assert other == {"inducing": 0.1, "kernel": 0.02, "likelihood": 0.3, "orbit": 0.04}


def test_block_of_another_kind_is_replaced(quick):
    spec = configuration.run_spec(quick, Run("parity", "rotation_90_from_20", 0))
    assert spec["likelihood"] == quick["experiments"]["parity"]["training"]["likelihood"]
    message = refusal(changed(quick, "experiments/mnist/variants/affine/training", {"optimiser": {"kind": "adam"}}))
    assert "optimiser.steps is missing" in message
    assert "replaced as a whole" in message


def test_identity_is_not_drawn_from_unless_the_variant_says_so(quick):
    assert configuration.run_spec(quick, Run("mnist", "rbf", 0))["scheme"] == {"kind": "full"}
    own = {"scheme": {"kind": "groups", "groups": 3, "size": 1, "sampler": "iid"}}
    config = changed(quick, "experiments/mnist/training", own)
    assert configuration.run_spec(config, Run("mnist", "rbf", 0))["scheme"] == {"kind": "full"}
    config = changed(quick, "experiments/mnist/variants/rbf/training", own)
    assert configuration.run_spec(config, Run("mnist", "rbf", 0))["scheme"] == own["scheme"]


def test_rates_that_a_run_does_not_use_are_left_out(quick):
    plain = {
        "kind": "adam",
        "steps": 400,
        "batch": 100,
        "rates": dict.fromkeys(("inducing", "kernel", "likelihood", "orbit", "variational"), 0.003),
        "warmup": 0.0,
        "floor": 1,
    }
    config = changed(quick, "experiments/mnist/variants/affine/training", {"optimiser": plain})
    configuration.check(config, "a test", SCHEMA)
    assert configuration.run_spec(config, Run("mnist", "affine", 0))["optimiser"] == plain
    before = configuration.digest(configuration.run_spec(quick, Run("mnist", "local", 0)))
    config = changed(quick, "training/optimiser/rates/variational", 0.5)
    assert configuration.digest(configuration.run_spec(config, Run("mnist", "local", 0))) == before


def test_local_defaults_and_generators(quick):
    orbit = {"kind": "local", "deformation": 0.1, "generators": 0.3, "thickening": 0.2}
    config = changed(quick, "experiments/mnist/variants/local/orbit", {"kind": "composed", "parts": [orbit]})
    (part,) = configuration.run_spec(config, Run("mnist", "local", 0))["orbit"]["parts"]
    assert part == {**orbit, "generators": [0.3] * 6, "mode": "warp", "trainable": True}


def test_specs_are_copies(quick):
    spec = configuration.run_spec(quick, Run("mnist", "affine", 0))
    spec["optimiser"]["rates"]["orbit"] = 17
    spec["dataset"]["train"] = 17
    spec["orbit"]["spread"] = 17
    again = configuration.run_spec(quick, Run("mnist", "affine", 0))
    assert 17 not in (again["optimiser"]["rates"]["orbit"], again["dataset"]["train"], again["orbit"].get("spread"))


def test_a_change_touches_only_the_runs_that_it_is_about(quick):
    def digests(config):
        return {run: configuration.digest(configuration.run_spec(config, run)) for run in configuration.runs(config)}

    before = digests(quick)
    after = digests(
        changed(quick, "experiments/mnist/variants/affine/training", {"optimiser": {"rates": {"orbit": 0.5}}})
    )
    assert {run.variant for run in before if before[run] != after[run]} == {"affine"}
    after = digests(changed(quick, "toy/seed", 5))
    assert before == after
    after = digests(changed(quick, "datasets/rotated/seed", 5))
    assert {run.experiment for run in before if before[run] != after[run]} == {"rotated"}


def test_spec_survives_yaml(quick):
    for run in configuration.runs(quick):
        spec = configuration.run_spec(quick, run)
        again = yaml.safe_load(yaml.safe_dump(spec))
        assert configuration.digest(again) == configuration.digest(spec)


# ---- canonical form ----


def test_canonical_form_forgets_order_and_spelling():
    assert configuration.canonical({"b": 90.0, "a": [1, 2.5]}) == '{"a":[1,2.5],"b":90}'
    assert configuration.digest({"a": 1, "b": 2}) == configuration.digest({"b": 2.0, "a": 1.0})
    assert configuration.digest({"a": 1}) != configuration.digest({"a": True})
    assert configuration.digest({"a": "1"}) != configuration.digest({"a": 1})
    assert configuration.digest([1, 2]) != configuration.digest([2, 1])
    assert configuration.digest((1, 2)) == configuration.digest([1, 2])
    assert len(configuration.digest({})) == 64


@pytest.mark.parametrize("value", [NAN, float("inf"), {"a": [NAN]}])
def test_canonical_form_of_what_is_no_json(value):
    with pytest.raises(ValueError, match="JSON"):
        configuration.canonical(value)


@given(st.dictionaries(st.text(), st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()))
def test_canonical_form_is_json_of_the_same_content(spec):
    assert json.loads(configuration.canonical(spec)) == spec
    assert configuration.canonical(dict(reversed(spec.items()))) == configuration.canonical(spec)


# ---- datasets and paths ----


def test_dataset_spec(quick):
    assert configuration.dataset_spec(quick, "mnist") == {"name": "mnist", **quick["datasets"]["mnist"]}
    with pytest.raises(ConfigError, match=r"dataset = 'minst' must be one of .*did you mean mnist"):
        configuration.dataset_spec(quick, "minst")


def test_paths_lie_under_results_and_the_size(quick, monkeypatch):
    monkeypatch.delenv("ORBITGP_RESULTS", raising=False)
    paths = configuration.paths(quick)
    root = Path("results/quick")
    assert paths.root == root
    assert paths.dataset("{dataset}") == root / "data/{dataset}.npz"
    assert paths.run("mnist", "rbf", 0) == Run("mnist", "rbf", 0).folder(root)
    assert paths.run("{experiment}", "{variant}", "{seed}") == root / "runs/{experiment}/{variant}/seed{seed}"
    assert paths.toy("metrics.csv") == root / "runs/toy/metrics.csv"
    assert paths.samples() == root / "runs/samples/samples.npz"
    assert paths.insensitivity("rbf") == root / "runs/insensitivity/rbf.csv"
    assert paths.estimators() == root / "runs/estimators/estimators.csv"
    assert paths.table("mnist") == root / "tables/mnist"
    assert paths.figure("fig1") == root / "figures/fig1"
    assert paths.claims() == root / "claims"
    assert paths.report() == root / "report.html"
    assert paths.checkpoints("ab") == root / "checkpoints/ab"
    assert paths.log("train") == root / "logs/train.log"
    assert paths.benchmark("train") == root / "benchmarks/train.tsv"


@pytest.mark.parametrize(("value", "root"), [("/elsewhere", "/elsewhere/quick"), ("", "results/quick")])
def test_results_may_lie_elsewhere(quick, monkeypatch, value, root):
    monkeypatch.setenv("ORBITGP_RESULTS", value)
    assert configuration.paths(quick).root == Path(root)


# ---- the schema itself ----


def test_every_block_of_the_schema_refuses_unknown_keys():
    """Wherever a block lists its keys by hand, others are refused there or in the part that knows its kind."""

    def blocks(schema: Any, at: str = ""):
        if isinstance(schema, dict):
            if schema.get("type") == "object":
                yield at, schema
            for key, value in schema.items():
                yield from blocks(value, f"{at}/{key}")
        elif isinstance(schema, list):
            for i, value in enumerate(schema):
                yield from blocks(value, f"{at}/{i}")

    found = list(blocks(yaml.safe_load(SCHEMA.read_text())))
    assert len(found) > 15
    for at, block in found:
        assert "additionalProperties" in block or "allOf" in block, at


def test_no_tensorflow_is_loaded():
    script = (
        "import sys, orbitgp_paper.config, orbitgp_paper.runs.reading, orbitgp_paper.analysis.tables, orbitgp_paper.analysis.claims\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('tensorflow', 'gpflow', 'keras', 'tf_keras')])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
