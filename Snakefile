# Every figure and table of the paper: `snakemake`, or `snakemake --config tier=smoke` for another size than `quick`.
# What there is to choose stands in config/{tier}.yaml; everything made lies under results/{tier}.
from snakemake.utils import min_version

min_version("9.5")


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/measure.smk"
include: "workflow/rules/analysis.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/report.smk"


localrules:
    all,


rule all:
    default_target: True
    input:
        rules.tables.input,
        rules.figures.input,
        rules.report.input,
