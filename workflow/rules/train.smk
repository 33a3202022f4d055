localrules:
    train,


rule train:
    input:
        run_files(RUNS, "final.json"),


rule train_run:
    input:
        images=lambda wildcards: images(spec(wildcards).dataset.name),
    output:
        metrics=PATHS.run("{experiment}", "{variant}", "{seed}") / "metrics.csv",
        timing=PATHS.run("{experiment}", "{variant}", "{seed}") / "timing.csv",
        params=PATHS.run("{experiment}", "{variant}", "{seed}") / "params.npz",
        settings=PATHS.run("{experiment}", "{variant}", "{seed}") / "config.yaml",
        provenance=PATHS.run("{experiment}", "{variant}", "{seed}") / "provenance.json",
        final=PATHS.run("{experiment}", "{variant}", "{seed}") / "final.json",
    log:
        PATHS.log("train/{experiment}/{variant}/seed{seed}"),
    benchmark:
        PATHS.benchmark("train/{experiment}/{variant}/seed{seed}")
    wildcard_constraints:
        experiment="|".join(CONFIG.experiments),
    conda:
        "../../environment.yml"
    # one, so that as many trainings run as there are cores: that is faster than more threads for each
    threads: 1
    resources:
        gpu=GPU,
        mem_mb=lambda wildcards, attempt: attempt * training_needs(spec(wildcards))["mem_mb"],
        runtime=lambda wildcards, attempt: attempt * training_needs(spec(wildcards))["runtime"],
    params:
        spec=lambda wildcards: canonical(spec(wildcards)),
        code=lambda wildcards: TRAINING_CODE[run_of(wildcards)],
        # what follows decides no result; a function of the output is not recorded, so that it reruns nothing
        folder=lambda wildcards, output: Path(output.final).parent,
        checkpoints=lambda wildcards, output: PATHS.root / "checkpoints",
        tensorboard=tensorboard,
    shell:
        "python workflow/scripts/train.py --spec {params.spec:q} --images {input.images:q} --folder {params.folder:q}"
        " --checkpoints {params.checkpoints:q} --threads {threads} --gpus {resources.gpu} --log {log:q} {params.tensorboard}"
