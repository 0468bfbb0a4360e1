"""Tables in Markdown, and what stands below them."""

import math
import statistics


def table(heads, rows):
    lines = [table_line(heads), "|" + " --- |" * len(heads)]
    return "\n".join([*lines, *map(table_line, rows)])


def table_line(cells):
    return "| " + " | ".join(cells) + " |"


def geometric_mean(ratios):
    return math.exp(statistics.fmean(map(math.log, ratios)))
