# Every figure and table of the paper: `snakemake`, or `snakemake --config tier=smoke` for another size than `quick`.
# What there is to choose stands in config/{tier}.yaml. With `runs: archive` there the run files are plain inputs and no
# rule makes them; with `runs: build`, or `--config runs=build`, everything is made, from the data sets on.
from snakemake.utils import min_version

min_version("9.5")


include: "workflow/rules/common.smk"


report: PATHS.report_text()


if BUILD:

    include: "workflow/rules/building.smk"
    include: "workflow/rules/data.smk"
    include: "workflow/rules/train.smk"
    include: "workflow/rules/measure.smk"


include: "workflow/rules/analysis.smk"
include: "workflow/rules/pages.smk"


localrules:
    all,
    tables,
    figures,
    table,
    claims,
    figure,
    page,
    article,
    crate,


rule all:
    default_target: True
    input:
        rules.tables.input,
        rules.figures.input,
        rules.page.output,
