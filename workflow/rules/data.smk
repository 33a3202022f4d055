# Images of each data set. The digest in a file's name is that of all that decides its content: the settings, our code
# and the user's own files. So other images are another file, and the same ones made again retrain nothing.
from orbitgp_paper.experiments.images import dataset_digest, image_counts

for name, dataset in CONFIG.datasets.items():
    for key in ("folder", "path"):
        if (own := getattr(dataset, key, None)) and not Path(own).exists():
            raise WorkflowError(f"config/{CONFIG.tier}.yaml: datasets.{name}.{key} = {own!r} is not there")


@lru_cache(maxsize=None)
def images(name):
    """The file of a data set's images. Its date means nothing."""
    return ancient(str(PATHS.dataset(name, dataset_digest(CONFIG.dataset(name)))))


localrules:
    data,


rule data:
    input:
        map(images, CONFIG.datasets),


rule dataset:
    output:
        PATHS.dataset("{dataset}", "{digest}"),
    log:
        PATHS.log("data/{dataset}-{digest}"),
    wildcard_constraints:
        dataset="|".join(CONFIG.datasets),
        digest="[0-9a-f]+",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=more_each_attempt(2000),
        runtime=more_each_attempt(10),
    params:
        settings=lambda wildcards: canonical(CONFIG.dataset(wildcards.dataset)),
    shell:
        "python workflow/scripts/dataset.py --settings {params.settings:q} --output {output:q} > {log:q} 2>&1"
