"""The Grafana dashboards, built with Grafana's own types: `python -m devkit.dashboards` writes them into the chart.

Every expression is over the metrics of `adapters/metrics.py` and `relay/metrics.py`; a test evaluates each of them
against a real Prometheus.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from grafana_foundation_sdk.builders import bargauge, prometheus, stat, table, timeseries
from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common, dashboard
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from devkit.panels import OPERATION_ROWS, SCORE_ROWS, Chart
from devkit.settings import REPOSITORY

FOLDER = REPOSITORY / "charts" / "casewarden" / "files" / "dashboards"
SOURCE = dashboard.DataSourceRef(type_val="prometheus", uid="${source}")
AnyPanel = timeseries.Panel | stat.Panel | table.Panel | bargauge.Panel


def _variables(names: Sequence[str]) -> list[builders.DatasourceVariable | builders.QueryVariable]:
    found: list[builders.DatasourceVariable | builders.QueryVariable] = [
        builders.DatasourceVariable("source").label("Data source").type("prometheus")
    ]
    for name in names:
        query = builders.QueryVariable(name).label(name.capitalize()).datasource(SOURCE)
        query = query.query(f"label_values(casewarden_run_assessed_ratio, {name})")
        query = query.refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED)
        query = query.sort(dashboard.VariableSort.ALPHABETICAL_ASC)
        found.append(query.multi(True).include_all(True).all_value(".*"))
    return found


def _panel(chart: Chart) -> AnyPanel:
    made: AnyPanel
    match chart.kind:
        case "lines":
            made = timeseries.Panel().fill_opacity(20 if chart.stacked else 0).show_points(common.VisibilityMode.AUTO)
            if chart.stacked:
                made = made.stacking(common_builders.StackingConfig().mode(common.StackingMode.NORMAL))
        case "stat":
            made = stat.Panel().text_mode(common.BigValueTextMode.VALUE_AND_NAME)
        case "table":
            made = table.Panel()
        case "bars":
            made = bargauge.Panel().orientation(common.VizOrientation.HORIZONTAL)
    made = made.title(chart.title).description(chart.description).datasource(SOURCE).unit(chart.unit).min(0)
    made = made.span(chart.width).height(4 if chart.width <= 4 else 8)
    if chart.most is not None:
        made = made.max(chart.most)
    for number, query in enumerate(chart.queries):
        target = prometheus.Dataquery().expr(query.expr).ref_id(chr(ord("A") + number)).datasource(SOURCE)
        if query.legend:
            target = target.legend_format(query.legend)
        if query.instant:
            target = target.instant()
        if chart.kind == "table":
            target = target.format(PromQueryFormat.TABLE)
        made = made.with_target(target)
    return made


def build(uid: str, title: str, description: str, rows: Sequence[tuple[str, Sequence[Chart]]],
          variables: Sequence[str]) -> str:  # fmt: skip
    """Return one dashboard as the JSON that Grafana imports."""
    made = builders.Dashboard(title).uid(uid).description(description).tags(["casewarden"]).refresh("30s")
    made = made.time("now-24h", "now").timezone("browser").readonly()
    made = made.tooltip(dashboard.DashboardCursorSync.CROSSHAIR)
    for variable in _variables(variables):
        made = made.with_variable(variable)
    for name, charts in rows:
        made = made.with_row(builders.Row(name))
        for chart in charts:
            made = made.with_panel(_panel(chart))
    return JSONEncoder(sort_keys=True, indent=2).encode(made.build()) + "\n"


def render() -> dict[str, str]:
    """Return every dashboard by the name of its file."""
    return {
        "scores.json": build(
            "casewarden-scores", "Casewarden / Scores", "What candidates came to, and how sure that is.", SCORE_ROWS,
            ("namespace", "task", "candidate"),
        ),
        "operations.json": build(
            "casewarden-operations", "Casewarden / Operations", "What operator, relay and store do.",
            OPERATION_ROWS, (),
        ),
    }  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a file is stale")
    options = parser.parse_args(arguments)
    stale = []
    for name, text in render().items():
        path: Path = FOLDER / name
        if path.exists() and path.read_text() == text:
            continue
        stale.append(path.relative_to(REPOSITORY))
        if not options.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    for path in stale:
        print(f"{path}: {'stale: run `make dashboards`' if options.check else 'written'}")
    return 1 if stale and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
