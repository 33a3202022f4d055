# What is measured besides training. Each leaves its settings beside its numbers.


rule toy:
    output:
        numbers=[PATHS.toy(name) for name in ("metrics.csv", "bounds.csv", "halves.csv", "surfaces.npz")],
        settings=PATHS.toy("config.yaml"),
    log:
        PATHS.log("toy"),
    conda:
        "../../environment.yml"
    resources:
        mem_mb=more_each_attempt(2000),
        runtime=more_each_attempt(10),
    params:
        settings=canonical(CONFIG.toy),
        code=sources.digest("orbitgp_paper.experiments.toy"),
    shell:
        "python workflow/scripts/measure.py --settings {params.settings:q} --output {output.settings:q}"
        " > {log:q} 2>&1"


use rule toy as toy_draws with:
    output:
        numbers=PATHS.toy_draws(),
        settings=PATHS.toy_draws().with_name("config.yaml"),
    log:
        PATHS.log("toy_draws"),
    params:
        settings=canonical(CONFIG.toy_draws),
        code=sources.digest("orbitgp_paper.experiments.toy_draws"),


use rule toy as costs with:
    output:
        numbers=PATHS.costs(),
        settings=PATHS.costs().with_name("config.yaml"),
    log:
        PATHS.log("costs"),
    params:
        settings=canonical(CONFIG.costs),
        code=sources.digest("orbitgp_paper.experiments.costs"),


use rule toy as estimators with:
    output:
        numbers=PATHS.estimators(),
        settings=PATHS.estimators().with_name("config.yaml"),
    log:
        PATHS.log("estimators"),
    resources:
        mem_mb=more_each_attempt(4000),
        runtime=more_each_attempt(60),
    params:
        settings=canonical(CONFIG.estimators),
        code=sources.digest("orbitgp_paper.experiments.spread"),


rule samples:
    input:
        unpack(lambda wildcards: trained(CONFIG.samples.run)),
    output:
        numbers=PATHS.samples(),
        settings=PATHS.samples().with_name("config.yaml"),
    log:
        PATHS.log("samples"),
    conda:
        "../../environment.yml"
    resources:
        mem_mb=more_each_attempt(4000),
        runtime=more_each_attempt(10),
    params:
        settings=canonical(CONFIG.samples),
        code=sources.digest("orbitgp_paper.experiments.samples"),
    shell:
        "python workflow/scripts/measure.py --settings {params.settings:q} --output {output.settings:q}"
        " {input.params:q} {input.images:q} > {log:q} 2>&1"


use rule samples as insensitivity with:
    input:
        unpack(lambda wildcards: trained(CONFIG.insensitivity.run(wildcards.variant))),
    output:
        numbers=PATHS.insensitivity("{variant}"),
        settings=PATHS.insensitivity("{variant}").with_suffix(".yaml"),
    log:
        PATHS.log("insensitivity/{variant}"),
    resources:
        gpu=GPU,
        mem_mb=more_each_attempt(4000),
        runtime=more_each_attempt(60),
    params:
        settings=canonical(insensitivity_settings()),
        code=sources.digest("orbitgp_paper.experiments.deviations"),
