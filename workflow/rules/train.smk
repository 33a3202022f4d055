localrules:
    train,


rule train:
    input:
        run_files(RUNS, "final.json"),


rule train_run:
    input:
        images=lambda wildcards: images_of(run_of(wildcards)),
        settings=lambda wildcards: settings_for_run(run_of(wildcards)),
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
        benchmark_of("{experiment}", "{variant}", "seed{seed}")
    conda:
        "../../environment.yml"
    # one, so that as many trainings run as there are cores: that is faster than more threads for each
    threads: 1
    resources:
        gpu=GPU,
        mem_mb=lambda wildcards, attempt: attempt * training_needs(run_of(wildcards))["mem_mb"],
        runtime=lambda wildcards, attempt: attempt * training_needs(run_of(wildcards))["runtime"],
    params:
        spec=lambda wildcards: configuration.canonical(spec_of(run_of(wildcards))),
        code=TRAINING_CODE,
        # what follows decides no result; a function of the output is not recorded, so that it reruns nothing
        images=lambda wildcards, output: images_file(run_of(wildcards)),
        folder=lambda wildcards, output: Path(output.final).parent,
        checkpoints=lambda wildcards, output: PATHS.root / "checkpoints",
        tensorboard=lambda wildcards, output: tensorboard_option(run_of(wildcards)),
    shell:
        "python workflow/scripts/train.py --spec {params.spec:q} --images {params.images:q} --folder {params.folder:q}"
        " --checkpoints {params.checkpoints:q} --threads {threads} --gpus {resources.gpu} --log {log:q} {params.tensorboard}"
