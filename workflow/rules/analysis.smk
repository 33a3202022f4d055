# Tables, verdicts and figures, from result files alone: nothing here loads TensorFlow. Code is an input, so that an edit
# makes again what it touches.


rule tables:
    input:
        [f"{PATHS.table(name)}.{ending}" for name in TABLES for ending in ("csv", "md", "tex")],
        [f"{PATHS.claims()}.{ending}" for _ in CLAIMS for ending in ("csv", "md")],


rule figures:
    input:
        [f"{PATHS.figure(name)}.{ending}" for name in FIGURES for ending in ("pdf", "svg", "png")],


rule table:
    input:
        results=lambda wildcards: TABLES[wildcards.table],
        paper="config/paper_values.yaml",
        code=code(
            "orbitgp_paper.analysis.tables",
            "orbitgp_paper.analysis.toy_rates",
            "orbitgp_paper.analysis.monitor",
            "orbitgp_paper.runs.reading",
        ),
        script=f"{SCRIPTS}/table.py",
    output:
        csv=f"{PATHS.table('{table}')}.csv",
        md=f"{PATHS.table('{table}')}.md",
        tex=f"{PATHS.table('{table}')}.tex",
    log:
        PATHS.log("tables/{table}"),
    conda:
        "../../environment.yml"
    params:
        caption=lambda wildcards: caption(wildcards.table, CONFIG),
    shell:
        "python {input.script} --output {output.csv:q} --caption {params.caption:q} --paper {input.paper:q}"
        " {input.results:q} > {log:q} 2>&1"


rule claims:
    input:
        tables=[f"{PATHS.table(name)}.csv" for name in TABLES],
        claims=CLAIMS,
        code=code("orbitgp_paper.analysis.verdicts", "orbitgp_paper.analysis.tables"),
        script=f"{SCRIPTS}/claims.py",
    output:
        csv=f"{PATHS.claims()}.csv",
        md=f"{PATHS.claims()}.md",
    log:
        PATHS.log("claims"),
    conda:
        "../../environment.yml"
    params:
        caption=f"Claims of {CONFIG.claims}, and what the runs of size “{CONFIG.tier}” say of them.",
    shell:
        "python {input.script} --output {output.csv:q} --caption {params.caption:q} --claims {input.claims:q}"
        " {input.tables:q} > {log:q} 2>&1"


rule figure:
    input:
        results=lambda wildcards: FIGURES[wildcards.figure],
        # Fig. 4 has its table in it
        table=lambda wildcards: f"{PATHS.table('mnist')}.csv" if wildcards.figure == "fig4" else [],
        code=lambda wildcards: code(
            f"orbitgp_paper.figures.{wildcards.figure}", "orbitgp_paper.runs.reading", "orbitgp_paper.measured"
        ),
        script=f"{SCRIPTS}/figure.py",
    output:
        svg=report(
            f"{PATHS.figure('{figure}')}.svg",
            caption="../report/figure.rst",
            category="Figures",
            labels={"name": "{figure}"},
        ),
        pdf=f"{PATHS.figure('{figure}')}.pdf",
        png=f"{PATHS.figure('{figure}')}.png",
    log:
        PATHS.log("figures/{figure}"),
    conda:
        "../../environment.yml"
    params:
        caption=lambda wildcards: caption_of(wildcards.figure).here,
    shell:
        "python {input.script} --output {output.svg:q} {input.results:q} {input.table:q} > {log:q} 2>&1"
