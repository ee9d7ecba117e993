"""What tools/bench-schedulers measured, as figures: read and written as CSV, shown as tables of Markdown and as a page."""

import csv
import html
import math
import sys
from dataclasses import astuple, dataclass, fields, replace

# What a run says of itself beside what its program measures, and how a table shows it: head, and divided by what.
COUNTED = {"guest_ms": ("elapsed, ms", 1), "cpu_ms": ("CPU time, ms", 1), "misses": ("misses, M", 1e6),
           "switches": ("switches", 1), "cpu_moves": ("CPU moves", 1), "domain_moves": ("cache moves", 1),
           "node_moves": ("node moves", 1), "remote": ("remote, M", 1e6), "first_touch": ("first touch", 1e6),
           "own": ("itself", 1e6), "other": ("another task", 1e6), "coherence": ("coherence", 1e6),
           "moved": ("after a move", 1e6)}
NAMES = {"guest_ms": "elapsed", "cpu_ms": "CPU time"}
# More is better of these, so their ratio is turned round where all are to be alike.
RATES = "_per_s"
# In how many rounds a scheduler did not schedule to the end.
ENDED = "ended"
DIFFERS = ("better", "worse")
TOO_FEW = "too_few"

STYLE = """body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; color: #222 }
table { border-collapse: collapse } .scroll { overflow-x: auto } td, th { padding: .25rem .6rem; text-align: left; white-space: nowrap }
td { border: 2px solid #fff; font-variant-numeric: tabular-nums } small { color: #555; display: block } td small { color: inherit; opacity: .8 }
tr > :first-child { position: sticky; left: 0; background: #fff } summary { cursor: pointer }"""
PREFACE = """Ratios to the kernel's own scheduler, of what each program is judged by, turned so that less is better: green
is less, red more, with the 95 % interval. Grey: no difference was shown. The first column is the kernel's against
itself. A real kernel and real programs over simulated caches."""


@dataclass
class Figure:
    """A mean, and its ratio to the first scheduler's with a 95 % interval; what is not known is None. Of the first
    scheduler there is no ratio, and of its second draws ("again") no mean."""

    machine: str
    program: str
    scheduler: str
    measure: str
    mean: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    verdict: str = ""

    def turned(self):
        """As less is better."""
        if not self.measure.endswith(RATES):
            return self
        low, high = (bound and 1 / bound for bound in (self.high, self.low))
        return replace(self, ratio=1 / self.ratio, low=low, high=high)

    def __str__(self):
        said = f"{self.ratio:.2f}"
        if self.low is not None:
            said += f" ({self.low:.2f} to {self.high:.2f})"
        return f"**{said}**" if self.verdict in DIFFERS else said

    def cell(self):
        """Of a page: green for less than the first scheduler, red for more, the deeper the farther."""
        color = "hsl(0 0% 96%)"
        if self.verdict in DIFFERS:
            hue = 140 if self.ratio < 1 else 10
            color = f"hsl({hue} 60% {max(94 - 60 * min(abs(math.log(max(self.ratio, 0.01))), 0.7), 50):.0f}%)"
        interval = f"<small>{self.low:.2f} to {self.high:.2f}</small>" if self.low is not None else ""
        return f'<td style="background:{color}">{self.ratio:.2f}{interval}'


def of_cell(machine, program, said, schedulers):
    """What `hearth emulate --rounds --json` says of a program on a machine."""
    # A policy's file has the name that it gives itself, so it is found by its place.
    names = [of["name"] for of in said["schedulers"]]
    columns = dict(zip(names, schedulers)) if len(names) == len(schedulers) else {}
    differences = {row["scheduler"]: row["of"] | row.get("measures", {}) for row in said["pairs"]}
    for of in said["schedulers"]:
        summary = of["summary"]
        means = {key: summary[key]["mean"] for key in COUNTED if key in summary}
        means["remote"] = summary["served"][3]["mean"] + summary["served"][5]["mean"]
        causes = [key for key in COUNTED if key not in means]
        means |= dict(zip(causes, (cause["mean"] for cause in summary["causes"])))
        means |= {key: measure["mean"] for key, measure in of.get("measures", {}).items()}
        column, ratios = columns.get(of["name"], of["name"]), differences.get(of["name"], {})
        for measure, mean in means.items():
            yield figure(machine, program, column, measure, mean, ratios.get(measure))
    for measure, difference in differences.get(f"{names[0]} again", {}).items():
        yield figure(machine, program, f"{schedulers[0]} again", measure, None, difference)
    endings = {}
    for ending in said.get("endings", []):
        endings.setdefault(ending["scheduler"], []).append(ending["what"].splitlines())
    for scheduler, whats in endings.items():
        what, lines = whats[0][0], whats[0][1:]
        telling = [line for line in lines if "error" in line.lower()] or lines[-1:]
        text = " ".join([what, *(line.strip() for line in telling)])
        yield Figure(machine, program, scheduler, ENDED, mean=len(whats), verdict=text)


def figure(machine, program, scheduler, measure, mean, difference):
    if not difference:
        return Figure(machine, program, scheduler, measure, mean)
    low, high = difference["interval"] or (None, None)
    return Figure(machine, program, scheduler, measure, mean, difference["ratio"], low, high, difference["verdict"])


def significant(value):
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


class Tables:
    """All figures. `programs(machine)` says of each program what it does and by which measure it is judged."""

    def __init__(self, figures, schedulers, machines, programs):
        by_cell = {}
        for of in figures:
            by_cell.setdefault((of.machine, of.program), []).append(of)
        self.programs = {name: {program: about for program, about in programs(name).items() if (name, program) in by_cell}
                         for name in machines}
        places = {name: place for place, name in enumerate([*schedulers, f"{schedulers[0]} again"])}
        in_order = lambda of: (of.measure == ENDED, places.get(of.scheduler, len(places)))
        self.figures = [of for name, program, _ in self.cells() for of in sorted(by_cell[name, program], key=in_order)]
        self.at = {(of.machine, of.program, of.scheduler, of.measure): of for of in self.figures}
        self.schedulers, self.columns = schedulers, [f"{schedulers[0]} again", *schedulers[1:]]

    def judged(self, name):
        """By program: the measure, and a figure for each column."""
        for program, about in self.programs[name].items():
            figures = [self.at.get((name, program, column, about.judged_by)) for column in self.columns]
            yield program, about.judged_by, [of and of.ratio and of.turned() for of in figures]

    def means(self, name):
        """By column: the geometric mean of what programs are judged by, how many these are, and the worst."""
        rows = list(self.judged(name))
        for place in range(len(self.columns)):
            ratios = [(figures[place].ratio, program) for program, _, figures in rows if figures[place]]
            mean = ratios and math.exp(sum(math.log(ratio) for ratio, _ in ratios) / len(ratios))
            yield ratios and (mean, len(ratios), *max(ratios)) or None

    def against_itself(self):
        """How often the first scheduler is said to differ from itself, of all that could be said."""
        verdicts = [of.verdict for of in self.figures if of.scheduler == self.columns[0] and of.verdict not in ("", TOO_FEW)]
        return sum(verdict in DIFFERS for verdict in verdicts), len(verdicts)

    def cells(self):
        return [(name, program, about) for name, programs in self.programs.items() for program, about in programs.items()]

    def of_cell(self, name, program):
        """Of a cell the heads of its means, and these by scheduler; the heads of its ratios, and these by column."""
        figures = [of for of in self.figures if (of.machine, of.program) == (name, program) and of.measure != ENDED]
        own = sorted({of.measure for of in figures} - COUNTED.keys())
        measures = [*COUNTED, *own]
        ratios = [measure for measure in measures if any(of.ratio and of.measure == measure for of in figures)]
        find = lambda scheduler, measure: self.at.get((name, program, scheduler, measure))
        means = {scheduler: [find(scheduler, measure) for measure in measures] for scheduler in self.schedulers}
        pairs = {column: [find(column, measure) for measure in ratios] for column in self.columns}
        present = lambda rows: {key: row for key, row in rows.items() if any(row)}
        heads = [COUNTED[measure][0] if measure in COUNTED else measure for measure in measures]
        return heads, present(means), [NAMES.get(measure, measure) for measure in ratios], present(pairs)

    def endings(self, name, program):
        return [f"In {of.mean:.0f} rounds: {of.verdict}" for of in self.figures
                if (of.machine, of.program, of.measure) == (name, program, ENDED)]

    def markdown(self):
        """A table for each machine."""
        parts = []
        for name in self.programs:
            rows = list(self.judged(name))
            if not rows:
                continue
            body = [[program, NAMES.get(measure, f"`{measure}`"), *(str(of or "") for of in figures)]
                    for program, measure, figures in rows]
            means = list(self.means(name))
            body.append(["**geometric mean** (programs)", "", *(f"{of[0]:.3f} ({of[1]})" if of else "" for of in means)])
            body.append(["**worst**", "", *(f"{of[2]:.2f} {of[3]}" if of else "" for of in means)])
            parts.append(f"### {name}\n\n" + markdown_table(["program", "judged by", *self.columns], body))
        differ, verdicts = self.against_itself()
        if verdicts:
            parts.append(f"The first scheduler against itself: {differ} of {verdicts} verdicts are that it differs.\n")
        return "\n".join(parts)

    def details(self):
        """All figures of each cell."""
        for name, program, about in self.cells():
            heads, means, heads_of_ratios, pairs = self.of_cell(name, program)
            body = [[scheduler, *(mean_of(of) for of in row)] for scheduler, row in means.items()]
            yield f"### {program} on {name}\n\n{about.about}.\n\n" + markdown_table(["", *heads], body, numbers=True)
            body = [[column, *(str(of) if of else "" for of in row)] for column, row in pairs.items()]
            yield markdown_table(["ratio", *heads_of_ratios], body)
            yield from (f"{ending}\n" for ending in self.endings(name, program))

    def page(self, title="Schedulers against the kernel's", more=""):
        """A heat map, with all figures below, which needs nothing else. `more`: what its first paragraph says, too."""
        parts = [f"""<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>{STYLE}</style>
<h1>{title}</h1>
<p>{PREFACE} {more}</p>"""]
        for name in self.programs:
            rows = list(self.judged(name))
            if not rows:
                continue
            body = []
            for program, measure, figures in rows:
                head = f"{html.escape(program)}<small>{html.escape(NAMES.get(measure, measure))}</small>"
                body.append((head, [of.cell() if of else "<td>" for of in figures]))
            means = list(self.means(name))
            body.append(("geometric mean", [f"<td>{of[0]:.3f}<small>{of[1]} programs</small>" if of else "<td>" for of in means]))
            body.append(("worst", [f"<td>{of[2]:.2f}<small>{html.escape(of[3])}</small>" if of else "<td>" for of in means]))
            parts.append(f"<h2>{html.escape(name)}</h2>" + html_table(["program", *self.columns], body))
        parts.append("<h2>All figures</h2>")
        for name, program, about in self.cells():
            heads, means, heads_of_ratios, pairs = self.of_cell(name, program)
            body = [(html.escape(scheduler), [f"<td>{mean_of(of)}" for of in row]) for scheduler, row in means.items()]
            parts.append(f"<details><summary>{html.escape(program)} on {html.escape(name)}</summary>"
                         f"<p>{html.escape(about.about)}.</p>" + html_table(["means", *heads], body))
            body = [(html.escape(column), [of.cell() if of else "<td>" for of in row]) for column, row in pairs.items()]
            parts.append(html_table(["ratio", *heads_of_ratios], body))
            parts.extend(f"<p>{html.escape(ending)}</p>" for ending in self.endings(name, program))
            parts.append("</details>")
        return "\n".join(parts) + "</html>\n"


def mean_of(figure):
    return significant(figure.mean / COUNTED.get(figure.measure, ("", 1))[1]) if figure and figure.mean is not None else ""


def markdown_table(heads, body, numbers=False):
    line = lambda words: f"| {' | '.join(words)} |\n"
    rule = f"|---|{('--:|' if numbers else '---|') * (len(heads) - 1)}\n"
    return line(heads) + rule + "".join(map(line, body))


def html_table(heads, body):
    head = "".join(f"<th scope=col>{html.escape(text)}" for text in heads)
    rows = "".join(f"<tr><th scope=row>{title}{''.join(cells)}" for title, cells in body)
    return f"<div class=scroll><table><thead><tr>{head}</thead><tbody>{rows}</tbody></table></div>"


def read(path):
    """Figures of a CSV file; none if there is no such file."""
    if not path.exists():
        return []
    kinds = {field.name: field.type for field in fields(Figure)}
    with path.open(newline="") as lines:
        rows = csv.DictReader(lines)
        if rows.fieldnames != [*kinds]:
            sys.exit(f"{path} has other columns than {','.join(kinds)}: was it written by another edition?")
        value = lambda key, text: text if kinds[key] is str else float(text) if text else None
        figures = []
        for row in rows:
            try:
                if None in row or None in row.values():
                    raise ValueError(f"not {len(kinds)} values")
                figures.append(Figure(**{key: value(key, text) for key, text in row.items()}))
            except ValueError as wrong:
                sys.exit(f"{path}, line {rows.line_num}: {wrong}")
        return figures


def write(path, figures):
    """As a CSV file, never half of it, with five digits."""
    part = path.with_suffix(".part")
    with part.open("w", newline="") as lines:
        rows = csv.writer(lines, lineterminator="\n")
        rows.writerow(field.name for field in fields(Figure))
        for of in figures:
            rows.writerow(f"{value:.5g}" if isinstance(value, float) else "" if value is None else value for value in astuple(of))
    part.rename(path)


def replaced(old, new):
    """The new figures, and the old ones of columns of a cell that nothing new is of."""
    column = lambda of: (of.machine, of.program, of.scheduler)
    columns = {column(of) for of in new}
    return [*(of for of in old if column(of) not in columns), *new]


class Published:
    """A folder's schedulers.csv, the tables of its schedulers.md, and schedulers-map.html."""

    BEGIN, END = "<!-- tables -->\n", "<!-- end of tables -->\n"

    def __init__(self, folder):
        self.page, self.map, self.csv = folder / "schedulers.md", folder / "schedulers-map.html", folder / "schedulers.csv"
        text = self.page.read_text() if self.page.exists() else ""
        self.before, begin, rest = text.partition(self.BEGIN)
        _, end, self.after = rest.partition(self.END)
        if not (begin and end):
            marks = f"{self.BEGIN.strip()} and {self.END.strip()}"
            sys.exit(f"{self.page} has to be there, with the lines {marks}: tables go between them")
        self.figures = read(self.csv)

    def add(self, figures, tables_of):
        """Figures in place of those of the same columns; all as tables."""
        more = 'Made by <code>tools/bench-schedulers</code>; <a href="schedulers.csv">the figures as CSV</a>.'
        write(self.csv, tables_of(replaced(self.figures, figures)).figures)
        # As they are read, so that the pages are the same whenever they are made.
        tables = tables_of(read(self.csv))
        self.map.write_text(tables.page(more=more))
        self.page.write_text(self.before + self.BEGIN + tables.markdown() + self.END + self.after)
