# One rule a figure, from result files alone: nothing here loads TensorFlow. Each depends on its own module and on what
# that imports, so that an edit redraws the figures that it touches.
localrules:
    figures,
    fig1,
    fig2,
    fig2_bound,
    fig3,
    fig4,
    fig5,
    appendix_a,
    appendix_b,


rule figures:
    input:
        [f"{PATHS.figure(name)}.{ending}" for name in DRAWN for ending in ("pdf", "svg", "png")],


rule fig1:
    input:
        results=PATHS.samples(),
        code=code("figures/fig1.py"),
        script=f"{SCRIPTS}/figure.py",
    output:
        svg=report(
            f"{PATHS.figure('fig1')}.svg",
            caption="../report/fig1.rst",
            **in_report("Figures", "Figure 1"),
        ),
        pdf=f"{PATHS.figure('fig1')}.pdf",
        png=f"{PATHS.figure('fig1')}.png",
    log:
        PATHS.log("figures/fig1"),
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        gpu=0,
        mem_mb=500,
        runtime=5,
    shell:
        "python {input.script} --output {output.svg:q} {input.results:q} > {log:q} 2>&1"


use rule fig1 as fig2 with:
    input:
        results=[PATHS.toy("surfaces.npz"), PATHS.toy("metrics.csv")],
        code=code("figures/fig2.py"),
        script=f"{SCRIPTS}/figure.py",
    output:
        svg=report(
            f"{PATHS.figure('fig2')}.svg",
            caption="../report/fig2.rst",
            **in_report("Figures", "Figure 2"),
        ),
        pdf=f"{PATHS.figure('fig2')}.pdf",
        png=f"{PATHS.figure('fig2')}.png",
    log:
        PATHS.log("figures/fig2"),


use rule fig1 as fig2_bound with:
    input:
        results=[PATHS.toy("bounds.csv")],
        code=code("figures/fig2_bound.py"),
        script=f"{SCRIPTS}/figure.py",
    output:
        svg=report(
            f"{PATHS.figure('fig2_bound')}.svg",
            caption="../report/fig2_bound.rst",
            **in_report("Figures", "Figure 2, the bound"),
        ),
        pdf=f"{PATHS.figure('fig2_bound')}.pdf",
        png=f"{PATHS.figure('fig2_bound')}.png",
    log:
        PATHS.log("figures/fig2_bound"),


use rule fig1 as fig3 with:
    input:
        results=results_of("parity"),
        code=code("figures/fig3.py", "analysis/runs.py"),
        script=f"{SCRIPTS}/figure.py",
    output:
        svg=report(
            f"{PATHS.figure('fig3')}.svg",
            caption="../report/fig3.rst",
            **in_report("Figures", "Figure 3"),
        ),
        pdf=f"{PATHS.figure('fig3')}.pdf",
        png=f"{PATHS.figure('fig3')}.png",
    log:
        PATHS.log("figures/fig3"),


use rule fig1 as fig4 with:
    input:
        results=[f"{PATHS.table('mnist')}.csv", *results_of("mnist")],
        code=code("figures/fig4.py", "analysis/runs.py", "analysis/formats.py"),
        script=f"{SCRIPTS}/figure.py",
    output:
        svg=report(
            f"{PATHS.figure('fig4')}.svg",
            caption="../report/fig4.rst",
            **in_report("Figures", "Figure 4"),
        ),
        pdf=f"{PATHS.figure('fig4')}.pdf",
        png=f"{PATHS.figure('fig4')}.png",
    log:
        PATHS.log("figures/fig4"),


use rule fig1 as fig5 with:
    input:
        results=results_of("rotated"),
        code=code("figures/fig5.py", "analysis/runs.py"),
        script=f"{SCRIPTS}/figure.py",
    output:
        svg=report(
            f"{PATHS.figure('fig5')}.svg",
            caption="../report/fig5.rst",
            **in_report("Figures", "Figure 5"),
        ),
        pdf=f"{PATHS.figure('fig5')}.pdf",
        png=f"{PATHS.figure('fig5')}.png",
    log:
        PATHS.log("figures/fig5"),


use rule fig1 as appendix_a with:
    input:
        results=INSENSITIVITY,
        code=code("figures/appendix_a.py"),
        script=f"{SCRIPTS}/figure.py",
    output:
        svg=report(
            f"{PATHS.figure('appendix_a')}.svg",
            caption="../report/appendix_a.rst",
            **in_report("Figures", "Appendix A"),
        ),
        pdf=f"{PATHS.figure('appendix_a')}.pdf",
        png=f"{PATHS.figure('appendix_a')}.png",
    log:
        PATHS.log("figures/appendix_a"),


use rule fig1 as appendix_b with:
    input:
        results=[PATHS.estimators()],
        code=code("figures/appendix_b.py"),
        script=f"{SCRIPTS}/figure.py",
    output:
        svg=report(
            f"{PATHS.figure('appendix_b')}.svg",
            caption="../report/appendix_b.rst",
            **in_report("Figures", "Appendix B"),
        ),
        pdf=f"{PATHS.figure('appendix_b')}.pdf",
        png=f"{PATHS.figure('appendix_b')}.png",
    log:
        PATHS.log("figures/appendix_b"),
