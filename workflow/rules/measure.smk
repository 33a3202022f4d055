# What is measured besides training. Each leaves its settings beside its numbers. What needs a trained model has the
# run's parameters as input: where results came with the repository there are none, and nothing is measured anew for
# want of them.


rule toy:
    input:
        settings=settings_for(PATHS.toy("config.yaml"), SETTINGS["toy"]),
    output:
        metrics=PATHS.toy("metrics.csv"),
        bounds=PATHS.toy("bounds.csv"),
        halves=PATHS.toy("halves.csv"),
        surfaces=PATHS.toy("surfaces.npz"),
        settings=PATHS.toy("config.yaml"),
    log:
        PATHS.log("toy"),
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        gpu=0,
        mem_mb=more_each_attempt(2000),
        runtime=more_each_attempt(10),
    params:
        settings=configuration.canonical(SETTINGS["toy"]),
        code=code_digest("experiments/toy.py"),
    shell:
        "python workflow/scripts/toy.py --settings {params.settings:q} --output {output.settings:q} > {log:q} 2>&1"


rule samples:
    input:
        params=run_files([sampled_run()], "params.npz"),
        settings=settings_for(PATHS.samples().with_name("config.yaml"), SETTINGS["samples"]),
    output:
        samples=PATHS.samples(),
        settings=PATHS.samples().with_name("config.yaml"),
    log:
        PATHS.log("samples"),
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        gpu=0,
        mem_mb=more_each_attempt(4000),
        runtime=more_each_attempt(10),
    params:
        settings=configuration.canonical(SETTINGS["samples"]),
        code=code_digest("experiments/samples.py"),
        images=lambda wildcards, output: images_file(sampled_run()),
    shell:
        "python workflow/scripts/samples.py --settings {params.settings:q} --params {input.params:q}"
        " --images {params.images:q} --output {output.samples:q} > {log:q} 2>&1"


rule insensitivity:
    input:
        params=lambda wildcards: run_files([insensitivity_run(wildcards.variant)], "params.npz"),
        settings=lambda wildcards: settings_for(
            PATHS.insensitivity(wildcards.variant).with_suffix(".yaml"),
            insensitivity_settings(),
        ),
    output:
        numbers=PATHS.insensitivity("{variant}"),
        settings=PATHS.insensitivity("{variant}").with_suffix(".yaml"),
    log:
        PATHS.log("insensitivity/{variant}"),
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        gpu=GPU,
        mem_mb=more_each_attempt(4000),
        runtime=more_each_attempt(60),
    params:
        settings=configuration.canonical(insensitivity_settings()),
        code=code_digest("experiments/insensitivity.py"),
        images=lambda wildcards, output: images_file(insensitivity_run(wildcards.variant)),
    shell:
        "python workflow/scripts/insensitivity.py --settings {params.settings:q} --params {input.params:q}"
        " --images {params.images:q} --output {output.numbers:q} > {log:q} 2>&1"


rule estimators:
    input:
        settings=settings_for(PATHS.estimators().with_name("config.yaml"), SETTINGS["estimators"]),
    output:
        numbers=PATHS.estimators(),
        settings=PATHS.estimators().with_name("config.yaml"),
    log:
        PATHS.log("estimators"),
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        gpu=0,
        mem_mb=more_each_attempt(4000),
        runtime=more_each_attempt(60),
    params:
        settings=configuration.canonical(SETTINGS["estimators"]),
        code=code_digest("experiments/estimators.py"),
    shell:
        "python workflow/scripts/estimators.py --settings {params.settings:q} --output {output.numbers:q}"
        " > {log:q} 2>&1"
