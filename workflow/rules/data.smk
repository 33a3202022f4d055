localrules:
    data,


rule data:
    input:
        [*map(images, CONFIG.datasets)],


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
        mem_mb=dataset_memory,
        runtime=more_each_attempt(10),
    params:
        settings=lambda wildcards: canonical(CONFIG.dataset(wildcards.dataset)),
    shell:
        "python workflow/scripts/dataset.py --settings {params.settings:q} --output {output:q} > {log:q} 2>&1"
