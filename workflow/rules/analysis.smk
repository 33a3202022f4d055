# Tables and verdicts, from result files alone: nothing here loads TensorFlow.
localrules:
    tables,
    table,
    claims,


rule tables:
    input:
        [f"{PATHS.table(name)}.{ending}" for name in TABLES for ending in ("csv", "md", "tex")],
        [f"{PATHS.claims()}.{ending}" for ending in ("csv", "md")],


rule table:
    input:
        results=lambda wildcards: TABLES[wildcards.table],
        paper="config/paper_values.yaml",
        code=code("analysis/tables.py", "analysis/runs.py"),
        script=f"{SCRIPTS}/table.py",
    output:
        csv=f"{PATHS.table('{table}')}.csv",
        md=f"{PATHS.table('{table}')}.md",
        tex=f"{PATHS.table('{table}')}.tex",
    log:
        PATHS.log("tables/{table}"),
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        gpu=0,
        mem_mb=500,
        runtime=5,
    params:
        caption=lambda wildcards: caption(wildcards.table, SETTINGS),
    shell:
        "python {input.script} --output {output.csv:q} --caption {params.caption:q} --paper {input.paper:q}"
        " {input.results:q} > {log:q} 2>&1"


rule claims:
    input:
        tables=[f"{PATHS.table(name)}.csv" for name in TABLES],
        claims="config/claims.yaml",
        code=code("analysis/claims.py", "analysis/tables.py"),
        script=f"{SCRIPTS}/claims.py",
    output:
        csv=f"{PATHS.claims()}.csv",
        md=f"{PATHS.claims()}.md",
    log:
        PATHS.log("claims"),
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        gpu=0,
        mem_mb=500,
        runtime=5,
    params:
        caption=f"What the paper says, and what the runs of size “{SETTINGS['tier']}” say of it.",
    shell:
        "python {input.script} --output {output.csv:q} --caption {params.caption:q} --claims {input.claims:q}"
        " {input.tables:q} > {log:q} 2>&1"
