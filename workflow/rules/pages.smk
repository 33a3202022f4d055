# Pages for Snakemake's own report, which `snakemake --report` makes of them and of the figures.
PAGES = {
    **{name: [f"{PATHS.table(name)}.csv"] for name in TABLES},
    **{"claims": [f"{PATHS.claims()}.csv"] for _ in CLAIMS},
    "settings": [f"config/{CONFIG.tier}.yaml", *run_files(RUNS, "config.yaml")],
}


rule pages:
    input:
        [PATHS.root / "pages" / f"{name}.html" for name in PAGES],


rule page:
    input:
        sources=lambda wildcards: PAGES[wildcards.page],
        code=code("orbitgp_paper.analysis.verdicts"),
        script=f"{SCRIPTS}/page.py",
    output:
        report(
            PATHS.root / "pages" / "{page}.html",
            caption="../report/page.rst",
            category=lambda wildcards: (
                wildcards.page.capitalize() if wildcards.page in ("claims", "settings") else "Tables"
            ),
            labels={"name": "{page}"},
        ),
    log:
        PATHS.log("pages/{page}"),
    conda:
        "../../environment.yml"
    params:
        caption=lambda wildcards: caption_of(wildcards.page),
    shell:
        "python {input.script} --output {output:q} --caption {params.caption:q} {input.sources:q} > {log:q} 2>&1"
