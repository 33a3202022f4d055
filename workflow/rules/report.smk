# Snakemake's own report: one page with the figures, the tables, the claims, all settings, and how long each job took.
localrules:
    report,
    page,
    settings_page,
    report_page,


rule report:
    input:
        PATHS.report(),


rule page:
    input:
        text=lambda wildcards: f"{PATHS.claims() if wildcards.page == 'claims' else PATHS.table(wildcards.page)}.md",
        script=f"{SCRIPTS}/page.py",
    output:
        report(
            PATHS.root / "pages" / "{page}.html",
            caption="../report/page.rst",
            category=lambda wildcards: ("Claims" if wildcards.page == "claims" else "Tables"),
            labels={"table": "{page}"},
        ),
    log:
        PATHS.log("pages/{page}"),
    wildcard_constraints:
        page="|".join([*TABLES, "claims"]),
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        gpu=0,
        mem_mb=500,
        runtime=5,
    shell:
        "python {input.script} --output {output:q} {input.text:q} > {log:q} 2>&1"


rule settings_page:
    input:
        settings=SETTINGS_FILE,
        runs=run_files(RUNS, "config.yaml"),
        script=f"{SCRIPTS}/page.py",
    output:
        report(
            PATHS.root / "pages" / "settings.html",
            caption="../report/settings.rst",
            **in_report("Settings", "all settings"),
        ),
    log:
        PATHS.log("pages/settings"),
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        gpu=0,
        mem_mb=500,
        runtime=5,
    shell:
        "python {input.script} --output {output:q} {input.settings:q} {input.runs:q} > {log:q} 2>&1"


rule report_page:
    input:
        pages=[PATHS.root / "pages" / f"{name}.html" for name in (*TABLES, "claims", "settings")],
        figures=rules.figures.input,
    output:
        PATHS.report(),
    log:
        PATHS.log("report"),
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        gpu=0,
        mem_mb=1000,
        runtime=5,
    params:
        tier=SETTINGS["tier"],
    shell:
        # Snakemake within Snakemake: it only reads, and what it reads is finished, so the lock may stay with the first
        "snakemake {input.pages:q} {input.figures:q} --report {output:q} --config tier={params.tier:q} --nolock"
        " > {log:q} 2>&1"
