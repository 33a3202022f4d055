localrules:
    data,


rule data:
    input:
        [PATHS.dataset(name) for name in SETTINGS["datasets"]],


rule dataset:
    input:
        lambda wildcards: own_files(SETTINGS["datasets"][wildcards.dataset]),
    output:
        PATHS.dataset("{dataset}"),
    log:
        PATHS.log("data/{dataset}"),
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        gpu=0,
        mem_mb=more_each_attempt(2000),
        runtime=more_each_attempt(10),
    params:
        settings=lambda wildcards: configuration.canonical(configuration.dataset_spec(SETTINGS, wildcards.dataset)),
        code=code_digest("experiments/datasets.py"),
    shell:
        "python workflow/scripts/dataset.py --settings {params.settings:q} --output {output:q} > {log:q} 2>&1"
