# What readers are sent: one page with everything, an article, and what each file is. Snakemake's own report, which `snakemake --report`
# makes, has the page too; its first page is made here, so that it can say what came out.

# what `make run` notes changes while it runs; in an archive it is a result like others
TIMES = [] if BUILD or not PATHS.times().exists() else [PATHS.times()]


rule page:
    input:
        settings=f"config/{CONFIG.tier}.yaml",
        tables=[f"{PATHS.table(name)}.csv" for name in TABLES],
        claims=[f"{PATHS.claims()}.csv" for _ in CLAIMS],
        figures=[f"{PATHS.figure(name)}.svg" for name in FIGURES],
        times=TIMES,
        code=code("orbitgp_paper.page.render"),
        templates=[f"{TEMPLATES}/{name}" for name in ("index.html", "style.css", "report.rst")],
        script=f"{SCRIPTS}/page.py",
    output:
        page=report(PATHS.page(), caption="../report/page.rst", category="Page", labels={"name": "everything"}),
        report=PATHS.report_text(),
    log:
        PATHS.log("page"),
    conda:
        "../../environment.yml"
    params:
        tier=CONFIG.tier,
        times=PATHS.times(),
    shell:
        "python {input.script} --tier {params.tier} --times {params.times:q} --output {output.page:q}"
        " --report {output.report:q} {input.tables:q} {input.claims:q} {input.figures:q} > {log:q} 2>&1"


rule article:
    input:
        settings=rules.page.input.settings,
        tables=rules.page.input.tables,
        claims=rules.page.input.claims,
        figures=rules.page.input.figures,
        times=TIMES,
        code=code("orbitgp_paper.page.article"),
        template=f"{TEMPLATES}/article.typ",
        script=f"{SCRIPTS}/article.py",
    output:
        PATHS.article(),
    log:
        PATHS.log("article"),
    conda:
        "../../environment.yml"
    params:
        tier=CONFIG.tier,
        times=PATHS.times(),
    shell:
        "python {input.script} --tier {params.tier} --times {params.times:q} --output {output:q}"
        " {input.tables:q} {input.claims:q} {input.figures:q} > {log:q} 2>&1"


rule crate:
    input:
        settings=rules.page.input.settings,
        runs=sorted({file for files in (*TABLES.values(), *FIGURES.values()) for file in files}),
        tables=rules.tables.input,
        figures=rules.figures.input,
        page=rules.page.output.page,
        times=TIMES,
        code=code("orbitgp_paper.page.crate"),
        script=f"{SCRIPTS}/crate.py",
    output:
        PATHS.crate(),
    log:
        PATHS.log("crate"),
    conda:
        "../../environment.yml"
    params:
        tier=CONFIG.tier,
    shell:
        "python {input.script} --tier {params.tier} --output {output:q} {input.runs:q} {input.tables:q} {input.figures:q}"
        " {input.page:q} {input.times:q} > {log:q} 2>&1"
