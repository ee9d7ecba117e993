#!/usr/bin/env python3
"""Prints the Grafana dashboard of `hearth start --metrics` and `hearth neighbours --metrics`:
packaging/monitoring/dashboard.py >packaging/monitoring/dashboard.json

Needs grafana-foundation-sdk: tools/check-monitoring installs it, and says whether dashboard.json is what this prints.
"""

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import StackingMode
from grafana_foundation_sdk.models.dashboard import DataSourceRef, VariableRefresh

WIDTH, HEIGHT = 24, 8
SOURCE = DataSourceRef(type_val="prometheus", uid="${source}")
# What tells that a host has Hearth: the daemon's metrics, and those of `hearth neighbours`, by way of another exporter.
HOSTS = "hearth_build_info|hearth_neighbours_observed_seconds"
HOST = 'instance=~"$instance"'


def of(metric, *labels):
    """A metric of the chosen hosts."""
    return f"{metric}{{{','.join([HOST, *labels])}}}"


def rate(metric, *labels):
    return f"rate({of(metric, *labels)}[$__rate_interval])"


def total(by, value):
    return f"sum by (instance{', ' + by if by else ''}) ({value})"


LOOKS = total("", rate("hearth_dispatches_total"))
WARM = total("", rate("hearth_dispatches_total", 'source=~"kept|own_queue|cache_domain"'))
FOUND = total("", rate("hearth_dispatches_total", 'source!="none"'))
# Title, unit, what it shows, queries with their legends, and whether they are parts of a whole.
STATS = [
    ("Policy", None, "The policy that is loaded. Nothing: Hearth does not run, and the kernel's own scheduler has the machine.",
     of("hearth_build_info"), "{{policy}} on {{instance}}"),
    ("Loaded for", "s", "Time since the scheduler was loaded. It begins again when the kernel has ended it and Hearth has loaded it anew.",
     of("hearth_uptime_seconds"), ""),
    ("CPUs", None, "CPUs that are scheduled.", of("hearth_cpus"), ""),
    ("Late tasks in the last hour", None, "Tasks that had waited for three tenths of the watchdog's time. More than none: find out who holds the CPU, with `hearth explain`.",
     "increase(" + of("hearth_dispatches_total", 'source="late"') + "[1h])", ""),
]
ROWS = {
    "Where CPUs find their tasks": [
        ("Looks by where the task came from", "ops", "Each look of a CPU for its next task, by where it found one.",
         [(total("source", rate("hearth_dispatches_total")), "{{instance}} {{source}}")], True),
        ("Tasks found where their data may be warm", "percentunit", "The task that ran, one of the CPU's own queue, or of its cache domain, as a part of all that were found.",
         [(f"{WARM} / {FOUND}", "{{instance}}")], False),
        ("Wake-ups", "ops", "Tasks that woke up and were placed on an idle CPU, or preempted another; and CPUs woken for a task that another CPU had taken.",
         [(total("", rate("hearth_idle_placements_total")), "{{instance}} on an idle CPU"),
          (total("", rate("hearth_preemptions_total")), "{{instance}} preempted another"),
          (total("", rate("hearth_wakes_in_vain_total")), "{{instance}} in vain")], False),
    ],
    "Waits beside idle CPUs": [
        ("Waits that ended where they began", "ops", "Though a CPU idled, of the same cache or beyond: the move would have cost more.",
         [(total("idle", rate("hearth_waits_kept_total")), "{{instance}} {{idle}}")], False),
        ("Time waited so", "s", "Seconds in each second, of all tasks together.",
         [(total("", rate("hearth_kept_waiting_seconds_total")), "{{instance}}")], False),
        ("Moves that idle CPUs refused", "ops", "They would soon have been wanted again.",
         [(total("", rate("hearth_moves_refused_total")), "{{instance}}")], False),
    ],
    "Planners": [
        ("Age of the last step", "s", "A little more than 1 s while all is well, and 30 s of the planner of pages, at most.",
         [(of("hearth_planner_age_seconds"), "{{instance}} {{planner}}")], False),
        ("Plans", "ops", "Published, and refused.",
         [(total("planner, outcome", rate("hearth_planner_plans_total")), "{{instance}} {{planner}} {{outcome}}")], False),
        ("CPU time of planners", "percentunit", "Of one CPU.",
         [(total("planner", rate("hearth_planner_cpu_seconds_total")), "{{instance}} {{planner}}")], False),
    ],
    "Pages": [
        ("Moved", "Bps", "Memory that was moved to the node where its process runs.",
         [(total("", rate("hearth_pages_moved_bytes_total")), "{{instance}}")], False),
        ("Local", "percentunit", "Of all memory that may be moved, the part on the node where its process runs.",
         [(of("hearth_pages_local_ratios"), "{{instance}}")], False),
        ("Stayed or failed", "ops", "Why pages stayed where they were.",
         [(total("reason", rate("hearth_pages_stayed_total")), "{{instance}} {{reason}}"),
          (total("reason", rate("hearth_pages_failed_total")), "{{instance}} failed: {{reason}}")], False),
    ],
    "Cache-fair shares and noisy neighbours": [
        ("Speed", "percentunit", "Instructions for each cycle of cache-fair tasks, as a part of those with a fair part of the cache.",
         [(of("hearth_cache_fair_speed_ratios"), "{{instance}}")], False),
        ("CPU time", "percentunit", "CPU time of cache-fair tasks, as a part of what weights alone would give.",
         [(of("hearth_cache_fair_share_ratios"), "{{instance}}")], False),
        ("Slowed by neighbours", "percentunit", "How much longer a program takes because of another, as `hearth neighbours --metrics` found it; what is sure alone.",
         [(of("hearth_neighbours_slowdown_ratios"), "{{instance}} {{victim}} by {{aggressor}}")], False),
    ],
}


def query(expression, legend, index=0):
    return (prometheus.Dataquery().expr(expression).legend_format(legend or "{{instance}}").ref_id("ABCDEFG"[index]))


def number(title, unit, about, expression, legend):
    panel = (stat.Panel().title(title).description(about).datasource(SOURCE).span(WIDTH // len(STATS)).height(HEIGHT // 2)
             .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"])).with_target(query(expression, legend).instant()))
    if unit:
        panel = panel.unit(unit)
    if legend:
        panel = panel.text_mode("name")
    return panel


def lines(title, unit, about, queries, is_stacked, span):
    panel = (timeseries.Panel().title(title).description(about).datasource(SOURCE).span(span).height(HEIGHT)
             .unit(unit).min(0).fill_opacity(30 if is_stacked else 0))
    if is_stacked:
        panel = panel.stacking(common.StackingConfig().mode(StackingMode.NORMAL))
    for index, (expression, legend) in enumerate(queries):
        panel = panel.with_target(query(expression, legend, index).range())
    return panel


def made():
    result = (dashboard.Dashboard("Hearth").uid("hearth").tags(["hearth", "scheduler"]).time("now-1h", "now").refresh("30s")
              .description("What Hearth's scheduler does, its planners, pages and classes: docs/monitoring.md")
              .with_variable(dashboard.DatasourceVariable("source").label("Data source").type("prometheus"))
              .with_variable(dashboard.QueryVariable("instance").label("Host").datasource(SOURCE).multi(True).include_all(True)
                             .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
                             .query({"query": f"label_values({{__name__=~\"{HOSTS}\"}}, instance)", "refId": "instance"})))
    for panel in STATS:
        result = result.with_panel(number(*panel))
    for title, panels in ROWS.items():
        result = result.with_row(dashboard.Row(title))
        for panel in panels:
            result = result.with_panel(lines(*panel, WIDTH // len(panels)))
    return result.build()


if __name__ == "__main__":
    print(JSONEncoder(sort_keys=True, indent=1).encode(made()))
