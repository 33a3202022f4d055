"""The configuration: what it accepts, what it refuses, and what it makes of a run."""

import copy
import json
import re
import shutil
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from orbitgp_paper import config as configuration
from orbitgp_paper.config import Config, ConfigError, Run, canonical, digest, load, parse, plain, read_spec, read_yaml
from orbitgp_paper.spec import RunSpec, parse_dataset

ROOT = Path(__file__).parents[3]
CONFIG = ROOT / "config"
TIERS = ("smoke", "quick", "paper")
QUICK, SMOKE = (read_yaml(CONFIG / f"{tier}.yaml") for tier in ("quick", "smoke"))
NAN = float("nan")
MISSING = object()
AFFINE = "experiments/mnist/variants/affine"


def changed(content: dict[str, Any], *changes: tuple[str, Any]) -> dict[str, Any]:
    """A copy with the values at keys with slashes set, or taken out."""
    content = copy.deepcopy(content)
    for key, value in changes:
        *path, last = key.split("/")
        block = content
        for part in path:
            block = block.setdefault(part, {})
        if value is MISSING:
            del block[last]
        else:
            block[last] = value
    return content


def quick(*changes: tuple[str, Any]) -> Config:
    return parse(changed(QUICK, *changes), "a test")


def refusal(*changes: tuple[str, Any]) -> str:
    with pytest.raises(ConfigError) as error:
        parse(changed(QUICK, *changes), "config/quick.yaml")
    message = str(error.value)
    assert len(message.splitlines()) == 1 and message.startswith("config/quick.yaml: ") and len(message) < 1000
    return message


# -- the files of the repository -----------------------------------------------------------------------------------


def test_sizes_have_the_same_experiments_and_a_small_ones_variants_are_among_a_large_ones():
    smoke, quick, paper = (
        {name: set(block.variants) for name, block in load(tier, CONFIG).experiments.items()} for tier in TIERS
    )
    assert set(smoke) == set(quick) == set(paper) == {"parity", "mnist", "rotated"}
    assert all(smoke[name] <= quick[name] <= paper[name] for name in quick)


def test_paper_size_is_the_papers():
    config = load("paper", CONFIG)
    assert plain(config.dataset("mnist")) == {"name": "mnist", "kind": "mnist", "train": 60_000, "test": 10_000}
    assert (config.dataset("rotated").train, config.dataset("rotated").test) == (12_000, 50_000)
    assert {config.spec(run).inducing.count for run in config.all_runs()} == {750}
    assert all(len(block.seeds) >= 3 for block in config.experiments.values())


def test_sums_have_as_many_inducing_points_as_the_whole_image_beside_them():
    config = load("sums", CONFIG)
    patches, whole = (config.spec(Run("sums", variant, 0)) for variant in ("patches", "image"))
    assert patches.inducing_points == whole.inducing_points == whole.inducing.count == 2200
    assert patches.orbit == whole.orbit
    assert patches.scheme.model_copy(update={"size": whole.scheme.size}) == whole.scheme  # but for the number of draws
    assert "count" not in plain(patches.model_dump(exclude_unset=True))["inducing"]  # which no component would read


@pytest.mark.parametrize(
    ("components", "words"),
    [
        ([], "components"),
        ([{"patch": 5}], "components.0.inducing is missing"),
        ([{"patch": 5, "stride": 0, "inducing": 10}], "components.0.stride"),
        ([{"stride": 2, "inducing": 10}], "stride and location belong to patches"),
        ([{"inducing": 201}], "components[0].inducing = 201 must be at most 200, the training images"),
    ],
)
def test_components_that_cannot_be_are_refused(components, words):
    content = changed(SMOKE, (f"{AFFINE}/training/components", components))
    with pytest.raises(ConfigError, match=re.escape(words)):
        parse(content, "a test")


@pytest.mark.parametrize("tier", ["paper", "ablation", "beyond"])
def test_shipped_runs_are_those_of_the_file(tier):
    config = load(tier, CONFIG)
    runs = config.all_runs()
    assert len(set(runs)) == len(runs)
    for run in runs:
        stored, spec = read_spec(run.folder(ROOT / "results" / tier) / "config.yaml"), config.spec(run)
        if spec.orbit.kind == "interpretable_affine" and spec.orbit.lower:
            stored = stored.changed(orbit=plain(spec.orbit))  # was stored with its angle in radians
        assert stored == spec


def test_schema_for_editors_is_that_of_the_models_describes_every_key_and_has_no_unknown_ones():
    schema = configuration.json_schema()
    stored = json.loads((CONFIG / "schema.json").read_text(encoding="utf-8"))
    assert stored == schema, "python -m orbitgp_paper.config > config/schema.json"
    for tier in (*TIERS, "ablation", "beyond", "checks", "cifar10", "sums", "why"):
        assert (CONFIG / f"{tier}.yaml").read_text().startswith("# yaml-language-server: $schema=schema.json\n")
    for name, block in schema["$defs"].items():
        assert block["additionalProperties"] is False, name
        for key, field in block["properties"].items():
            inner = json.dumps(field)
            assert "description" in field or "$ref" in inner or key in ("kind", "seed", "experiment", "variant"), key


# -- reading files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tier", ["../quick", "nope", "claims", "paper_values", 3, None, "", "quick\n", "config/quick"])
def test_unknown_tier_names_those_there_are(tier):
    with pytest.raises(ConfigError, match=r"tier is .*; .*config has .*quick"):
        load(tier, CONFIG)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tier: quick\ntier: smoke\n", "'tier' stands a second time"),
        ("tier: [quick\n", "is not YAML"),
        ("tier: !!python/object/apply:os.system [true]\n", "is not YAML"),
        (f"{'[' * 1000}\n", "is not YAML"),
        ("\x00", "is not YAML"),
        ("\udcff", "is not YAML"),  # a byte that is no UTF-8
        ("#" * 1_000_001, "1,000,001 bytes"),
        ("", "must be a valid dictionary"),
        ("1: 2\n", "tier is missing"),
        ("tier: smoke\n", "tier = 'smoke' must be 'quick'"),
        ("tier: quick\nbase: none\n", "base is 'none'"),
        ("tier: quick\nbase: [1]\n", "base is [1]"),
    ],
    ids=lambda text: ascii(text[:20]),
)
def test_text_that_is_no_configuration(tmp_path, text, words):
    (tmp_path / "quick.yaml").write_text(text, errors="surrogateescape")
    (tmp_path / "smoke.yaml").write_text((CONFIG / "smoke.yaml").read_text())
    if words.startswith("tier ="):
        (tmp_path / "quick.yaml").write_text((CONFIG / "smoke.yaml").read_text())
    with pytest.raises(ConfigError, match=r"quick\.yaml") as error:
        load("quick", tmp_path)
    assert words in str(error.value)


def test_aliases_that_grow_are_not_written_out(tmp_path):
    """A few lines that stand for ten million values: the complaint shows the first of them, and makes no others."""
    rows = [f"- &a{i} [{', '.join([f'*a{i - 1}' if i else '0'] * 10)}]\n" for i in range(7)]
    (tmp_path / "quick.yaml").write_text(f"base:\ntier:\n{''.join(rows)}")
    tracemalloc.start()
    try:
        with pytest.raises(ConfigError, match=r"quick\.yaml: tier = \[\[0, 0") as error:
            load("quick", tmp_path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(str(error.value)) < 1000
    assert peak < 5_000_000


def test_numbers_and_merged_keys_of_yaml(tmp_path):
    file = tmp_path / "x.yaml"
    file.write_text("a: &a {x: 1e-3, y: -2E+5}\nb:\n  <<: *a\n  y: '1e-3'\nc: 1e3x\n")
    read = read_yaml(file)
    assert read == {"a": {"x": 0.001, "y": -2e5}, "b": {"x": 0.001, "y": "1e-3"}, "c": "1e3x"}


# -- a file over another -------------------------------------------------------------------------------------------

OWN = """
tier: own
base: quick
runs: archive
datasets: {own: {kind: images, path: my.npz}, rotated: {kind: mnist, train: 500, test: 100}}
training: {optimiser: {steps: 20}, evaluation: {count: 10, samples: null}}
samples: null
insensitivity: null
experiments:
  parity: null
  rotated: null
  mnist: {variants: {rbf: null, affine: {orbit: {kind: rotation, alpha: 5}, label: turned}}}
  own: {seeds: [3], variants: {one: {dataset: own, orbit: {kind: identity}, label: "Ω & |"}}}
"""


def test_a_small_file_over_a_large_one(tmp_path):
    shutil.copy(CONFIG / "quick.yaml", tmp_path)
    (tmp_path / "own.yaml").write_text(OWN)
    (tmp_path / "more.yaml").write_text("tier: more\nbase: own\nruns: build\n")
    config = load("own", tmp_path)
    assert (config.tier, config.runs, load("more", tmp_path).runs) == ("own", "archive", "build")
    assert list(config.experiments) == ["mnist", "own"]
    assert list(config.experiments["mnist"].variants) == ["rotation", "affine", "local"]
    assert config.samples is config.insensitivity is None and config.toy is not None
    assert plain(config.dataset("rotated")) == {"name": "rotated", "kind": "mnist", "train": 500, "test": 100}
    spec = config.spec(Run("mnist", "affine", 0))
    assert plain(spec.orbit) == {"kind": "rotation", "alpha": 5, "trainable": True, "transform": "fold"}
    assert (spec.label, spec.optimiser.steps, spec.optimiser.batch, spec.evaluation.samples) == ("turned", 20, 200, 32)
    assert load("more", tmp_path).all_runs() == config.all_runs()


def test_bases_in_a_circle_and_a_folder(tmp_path):
    (tmp_path / "folder.yaml").mkdir()
    for tier, base in (("one", "two"), ("two", "one")):
        (tmp_path / f"{tier}.yaml").write_text(f"tier: {tier}\nbase: {base}\n")
    for tier, words in (("one", r"two\.yaml: base is 'one'.*one → two → one"), ("folder", "cannot be read")):
        with pytest.raises(ConfigError, match=words):
            load(tier, tmp_path)


# -- what is refused; ranges are those of the schema ---------------------------------------------------------------

LOCAL = {"kind": "local", "deformation": 0.1, "thickening": 0.1}
BOX = {"lower": [0] * 6, "upper": [1] * 6}


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("training/optimiser/rates/orbit", "1e-3", "training.optimiser.rates.orbit = '1e-3' must be a valid number"),
        ("training/optimiser/rates/orbit", NAN, "rates.orbit = nan must be a finite number"),
        ("training/optimiser/rates/orbit", -0.1, "greater than or equal to 0"),
        ("training/optimiser/steps", True, "steps = True must be a valid integer"),
        ("training/optimiser/steps", 6.0, "must be a valid integer"),
        ("datasets/rotated/train", 69_500, "datasets.rotated: train + test = 70500 must be at most 70000"),
        # keys and words
        ("training/optimiser/stepz", 3, "training.optimiser.stepz = 3 is no key here (did you mean steps?)"),
        ("a\nb" * 5000, 0.1, "is no key here"),
        ("tier", MISSING, "tier is missing"),
        ("training/optimiser/steps", MISSING, "variants.rbf_90: optimiser.steps is missing"),
        ("experiments/mnist/seeds", [0, 0], "experiments.mnist.seeds: [0, 0] has an entry more than once"),
        ("experiments/mnist/variants/rbf/label", "two\nlines", "rbf.label"),
        ("training/precision", "float16", "must be 'mixed' or 'float64'"),
        ("datasets/mnist/kind", "cifar", "datasets.mnist.kind = 'cifar' must be one of 'mnist', 'parity'"),
        ("datasets/mnist/kind", MISSING, "datasets.mnist.kind is missing"),
        ("datasets/mnist/folder", "a\x00b", "datasets.mnist.folder"),
        # orbits
        (f"{AFFINE}/orbit", "rotation", "orbit = 'rotation'"),
        (f"{AFFINE}/orbit", {"kind": "affine"}, "either spread, or both"),
        (f"{AFFINE}/orbit", {"kind": "affine", "lower": [0] * 6}, "either spread, or both"),
        (f"{AFFINE}/orbit", {"kind": "affine", **BOX, "spread": 0.1}, "either spread, or both"),
        (f"{AFFINE}/orbit", {"kind": "rotation", "alpha": 180, "transform": "sigmoid"}, "alpha = 180 must lie between"),
        (f"{AFFINE}/orbit", {**LOCAL, "generators": [0.1] * 5}, "at least 6 items"),
        (f"{AFFINE}/orbit", {**LOCAL, "generators": -0.1}, "orbit.generators.0 = -0.1"),
        (f"{AFFINE}/orbit", {"kind": "composed", "parts": [{**LOCAL, "generators": -1}]}, "parts.0.generators.0 = -1"),
        # what blocks ask of each other
        ("experiments/parity/training/likelihood", {"kind": "polya_gamma", "tilt": "network"}, "network needs hidden"),
        (
            "experiments/parity/training/likelihood",
            {"kind": "polya_gamma", "tilt": "table", "hidden": [3]},
            "network needs",
        ),
        ("training/likelihood", {"kind": "softmax", "tilt": "network"}, "network needs hidden"),
        ("training/likelihood", {"kind": "dirichlet", "concentration": 0}, "concentration = 0"),
        ("experiments/parity/training/likelihood", {"kind": "dirichlet"}, "does not fit a dataset of kind 'parity'"),
        ("experiments/mnist/variants/rbf/dataset", "minst", "rbf.dataset = 'minst' must be one of"),
        ("experiments/mnist/variants/rbf/dataset", "9" * 5000, "rbf.dataset = '999"),
        ("experiments/mnist/variants/rbf/dataset", "parity90", "does not fit a dataset of kind 'parity'"),
        ("experiments/parity/training/likelihood", {"kind": "gaussian"}, "polya_gamma is for two classes"),
        ("samples/experiment", "minst", "samples: experiment = 'minst' must be one of"),
        ("samples/variant", "afine", "did you mean affine?"),
        ("samples/seed", 7, "seed = '7' must be one of 0, 1"),
        ("insensitivity/variants", ["rbf", "bend"], "insensitivity: experiments.mnist.variant = 'bend'"),
        ("insensitivity/images", 9, "insensitivity.images = 9 must be at least 10"),
        ("insensitivity/images", 10**6, "at most 1000, the test images of mnist"),
        ("estimators/order", 4, "must be at most estimators.order = 4"),
        ("training/optimiser/batch", 10**6, "optimiser.batch = 1000000 must be at most 4000"),
        ("training/inducing/count", 9_999, "inducing.count = 9999 must be at most 4000"),
        ("training/evaluation/count", 10**6, "evaluation.count = 1000000 must be at most 250 steps"),
        ("training/optimiser/natural", {"first": 0.1, "last": 0.2}, "optimiser.natural: last = 0.2 must be at most"),
    ],
)
def test_refused(key, value, words):
    assert words in refusal((key, value))


@pytest.mark.parametrize("name", ["..", "a/b", "", "A", "1a", "a-b", "ä", "{x}", "a\n", "x" * 61])
@pytest.mark.parametrize("where", ["datasets", "experiments", "experiments/mnist/variants"])
def test_names_that_could_be_paths_or_wildcards(where, name):
    content = copy.deepcopy(QUICK)
    block = content["experiments"]["mnist"]["variants"] if "/" in where else content[where]
    block[name] = next(iter(block.values()))
    with pytest.raises(ConfigError, match=f"{where.replace('/', '.')}.*must (match pattern|have at most)"):
        parse(content, "a test")


@pytest.mark.parametrize("name", configuration.RESERVED)
def test_names_of_other_tables_are_taken(name):
    assert "reserved name" in refusal((f"experiments/{name}", QUICK["experiments"]["mnist"]))


FINITE = {"kind": "right_angles"}


@pytest.mark.parametrize(
    ("orbit", "scheme", "words"),
    [
        ({"kind": "affine", "spread": 0.1}, {"kind": "full"}, "needs an orbit that can be listed"),
        ({"kind": "affine", "spread": 0.1}, {"kind": "without_replacement", "count": 2}, "needs an orbit"),
        (FINITE, {"kind": "without_replacement", "count": 5}, "in 2 … 4"),
        (FINITE, {"kind": "without_replacement", "count": 1}, "in 2 … 4"),
        ({"kind": "quantised_rotation", "order": 3}, {"kind": "without_replacement", "count": 4}, "in 2 … 3"),
        (FINITE, {"kind": "full"}, None),
        (FINITE, {"kind": "without_replacement", "count": 4}, None),
        ({"kind": "identity"}, {"kind": "without_replacement", "count": 1}, None),
        ({"kind": "rotation", "alpha": 20}, {"kind": "paper", "samples": 8, "shared": False}, None),
    ],
)
def test_schemes_fit_their_orbit(orbit, scheme, words):
    changes = (f"{AFFINE}/orbit", orbit), (f"{AFFINE}/training", {"scheme": scheme})
    if words:
        assert words in refusal(*changes)
    else:
        assert plain(quick(*changes).spec(Run("mnist", "affine", 0)).scheme) == scheme


def test_a_block_that_is_taken_away_is_named():
    assert "optimiser.kind is missing" in refusal(("training/optimiser", None))
    assert "rbf_90: optimiser is missing" in refusal(("experiments/parity/training/optimiser", None))


@settings(max_examples=50)
@given(st.data())
def test_any_value_in_any_place_is_refused_in_one_line_or_accepted_with_runs_that_resolve(data):
    content = copy.deepcopy(SMOKE)
    block: Any = content
    while True:
        key = data.draw(st.sampled_from(sorted(block) if isinstance(block, dict) else list(range(len(block)))))
        if isinstance(block[key], dict | list) and block[key] and data.draw(st.booleans()):
            block = block[key]
        else:
            break
    odd = st.sampled_from([10**400, 1e308, "9" * 5000, {}, [], {"kind": []}, {1: 2}])
    block[key] = data.draw(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | odd)
    try:
        config = parse(content, "here")
    except ConfigError as error:
        assert len(str(error).splitlines()) == 1 and len(str(error)) < 1000
    else:
        for run in config.all_runs():
            json.loads(canonical(config.spec(run)))


# -- runs and their specifications ---------------------------------------------------------------------------------


def test_variant_over_experiment_over_file():
    config = quick(
        ("training/optimiser/rates", {"inducing": 0.1, "kernel": 0.2, "likelihood": 0.3, "orbit": 0.4}),
        ("experiments/mnist/training", {"optimiser": {"rates": {"kernel": 0.02, "orbit": 0.04}}}),
        (f"{AFFINE}/training", {"optimiser": {"rates": {"orbit": 0.004, "inducing": None}}}),
    )
    rates = {
        run.variant: plain(config.spec(run).optimiser.rates) for run in config.all_runs() if run.experiment == "mnist"
    }
    # null is the default
    assert rates["affine"] == {"inducing": 0.004, "kernel": 0.02, "likelihood": 0.3, "orbit": 0.004}
    assert rates["local"] == {"inducing": 0.1, "kernel": 0.02, "likelihood": 0.3, "orbit": 0.04}


def test_block_of_another_kind_is_replaced():
    spec = quick().spec(Run("parity", "rotation_90_from_20", 0))
    assert plain(spec.likelihood) == QUICK["experiments"]["parity"]["training"]["likelihood"]
    assert "optimiser.steps is missing" in refusal((f"{AFFINE}/training", {"optimiser": {"kind": "adam"}}))


def test_identity_is_not_drawn_from_unless_the_variant_says_so():
    own = {"scheme": {"kind": "groups", "groups": 3, "size": 1, "sampler": "iid", "shared": False}}
    rbf, run = "experiments/mnist/variants/rbf/training", Run("mnist", "rbf", 0)
    assert plain(quick().spec(run).scheme) == {"kind": "full"}
    assert plain(quick(("experiments/mnist/training", own)).spec(run).scheme) == {"kind": "full"}
    assert plain(quick((rbf, own)).spec(run).scheme) == own["scheme"]


def test_rates_that_a_run_does_not_use_are_left_out():
    adam = {"kind": "adam", "steps": 400, "batch": 100, "rates": {"variational": 0.5}, "natural": {"first": 0.5}}
    optimiser = plain(quick((f"{AFFINE}/training", {"optimiser": adam})).spec(Run("mnist", "affine", 0)).optimiser)
    assert optimiser["rates"]["variational"] == 0.5 and "natural" not in optimiser
    local = Run("mnist", "local", 0)
    assert quick(("training/optimiser/rates/variational", 0.5)).spec(local) == quick().spec(local)


def test_one_generator_stands_for_six():
    orbit = {**LOCAL, "generators": 0.3}
    spec = quick((f"{AFFINE}/orbit", {"kind": "composed", "parts": [orbit]})).spec(Run("mnist", "affine", 0))
    assert plain(spec.orbit.parts) == [{**orbit, "generators": [0.3] * 6, "mode": "warp", "trainable": True}]


def test_a_change_touches_only_the_runs_that_it_is_about():
    def touched(*changes: tuple[str, Any]) -> set[Run]:
        config = quick(*changes)
        return {run for run in config.all_runs() if digest(config.spec(run)) != before[run]}

    before = {run: digest(quick().spec(run)) for run in quick().all_runs()}
    affine = touched((f"{AFFINE}/training", {"optimiser": {"rates": {"orbit": 0.5}}}))
    assert {run.variant for run in affine} == {"affine"}
    assert {run.experiment for run in touched(("datasets/rotated/seed", 5))} == {"rotated"}
    assert not touched(("toy/seed", 5))


def test_specs_survive_their_files(tmp_path):
    for run in quick().all_runs():
        spec = quick().spec(run)
        (tmp_path / "config.yaml").write_text(yaml.safe_dump(plain(spec), allow_unicode=True))
        assert read_spec(tmp_path / "config.yaml") == spec == RunSpec.model_validate_json(canonical(spec))
        assert parse_dataset(json.loads(canonical(spec.dataset))) == spec.dataset
    (tmp_path / "config.yaml").write_text("seed: 3\n")
    with pytest.raises(ConfigError, match=r"config\.yaml: .* is missing"):
        read_spec(tmp_path / "config.yaml")


def test_canonical_form_forgets_order_and_spelling():
    assert canonical({"b": 90.0, "a": (1, 2.5)}) == '{"a":[1,2.5],"b":90}'
    assert digest({"a": 1, "b": 2}) == digest({"b": 2.0, "a": 1.0})
    assert len({digest(value) for value in ({"a": 1}, {"a": True}, {"a": "1"}, [1, 2], [2, 1])}) == 5
    with pytest.raises(ValueError, match="JSON"):
        canonical({"a": [NAN]})


@given(st.dictionaries(st.text(), st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()))
def test_canonical_form_is_json_of_the_same_content(content):
    assert json.loads(canonical(content)) == content
    assert canonical(dict(reversed(content.items()))) == canonical(content)


# -- names and places ----------------------------------------------------------------------------------------------


def test_paths_lie_under_results_and_the_size_and_another_mode_has_a_folder_of_its_own(monkeypatch):
    monkeypatch.delenv("ORBITGP_RESULTS", raising=False)
    paths = quick().paths()
    assert paths.root == quick().paths("build").root == Path("results/quick")
    assert paths.run("mnist", "rbf", 0) == Run("mnist", "rbf", 0).folder(paths.root)
    monkeypatch.setenv("ORBITGP_RESULTS", "elsewhere")
    shipped = quick(("runs", "archive"))
    assert shipped.paths().root == Path("elsewhere/quick")
    assert shipped.paths("build").root == Path("elsewhere/quick_build")
    assert quick().paths("archive").root == Path("elsewhere/quick_archive")


def test_no_tensorflow_is_loaded():
    figures = ("fig1", "fig2", "fig2_bound", "fig3", "fig4", "fig5", "appendix_a", "appendix_b")
    modules = ["config", "runs.reading", "analysis.tables", "analysis.claims", "experiments.images"]
    modules = [f"orbitgp_paper.{module}" for module in (*modules, *(f"figures.{name}" for name in figures))]
    script = f"import sys, orbitgp, orbitgp.datasets, {', '.join(modules)}\n"
    script += "print({name.split('.')[0] for name in sys.modules} & {'tensorflow', 'gpflow', 'keras', 'snakemake'})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
