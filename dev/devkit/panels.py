"""What the dashboards show: every panel and its expressions, over the metrics of operator and relay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SCORES = 'namespace=~"$namespace", task=~"$task", candidate=~"$candidate"'
AUDITS = 'namespace=~"$namespace", task=~"$task"'
RATE = "[$__rate_interval]"


@dataclass(frozen=True)
class Query:
    """One expression and what its series are called."""

    expr: str
    legend: str = ""
    instant: bool = False


@dataclass(frozen=True)
class Chart:
    """One panel: what it shows, in which unit, and how wide it is of 24 columns."""

    title: str
    description: str
    queries: tuple[Query, ...]
    unit: str = "short"
    width: int = 8
    kind: Literal["lines", "stat", "table", "bars"] = "lines"
    most: float | None = None
    stacked: bool = False


def _quantiles(histogram: str) -> tuple[Query, ...]:
    return tuple(
        Query(f"histogram_quantile({q}, sum by (le) (rate({histogram}_bucket{RATE})))", f"p{int(q * 100)}")
        for q in (0.5, 0.95)
    )


SCORE_ROWS: tuple[tuple[str, tuple[Chart, ...]], ...] = (
    (
        "Scores",
        (
            Chart(
                "Score over time",
                "Mean score of the runs there are, by task and candidate. A run that is not valid has no score.",
                (Query(f"avg by (task, candidate) (casewarden_run_score{{{SCORES}}})", "{{task}} {{candidate}}"),),
                "percentunit",
                16,
                most=1,
            ),
            Chart(
                "Assessed",
                "Share of the cases that were assessed. Below 100 % a run is not valid.",
                (Query(f"min by (task) (casewarden_run_assessed_ratio{{{SCORES}}})", "{{task}}", instant=True),),
                "percentunit",
                8,
                "bars",
                most=1,
            ),
            Chart(
                "Score, interval and floor of each run",
                "What a run came to, between which bounds, and what needs no skill (null agent) or all of it "
                "(reference). Bounds and floors are there for runs that have them.",
                (
                    Query(f"casewarden_run_score{{{SCORES}}}", "{{run}} score"),
                    Query(f"casewarden_run_score_bound{{{SCORES}}}", "{{run}} {{bound}}"),
                    Query(f"casewarden_run_score_floor{{{SCORES}}}", "{{run}} {{control}}"),
                ),
                "percentunit",
                16,
                most=1,
            ),
            Chart(
                "Tokens of each run",
                "What a finished run's models read and wrote: the candidate's, and those that its task asked.",
                (Query(f"sum by (run, asked_by) (casewarden_run_model_tokens{{{SCORES}}})", "{{run}} {{asked_by}}"),),
                "short",
                8,
            ),
            Chart(
                "Runs with a score",
                "How many runs are shown; the metrics' cap leaves the oldest out.",
                (
                    Query(f"count(casewarden_run_score{{{SCORES}}})", "shown", instant=True),
                    Query("sum(casewarden_run_scores_not_shown)", "not shown", instant=True),
                ),
                "short",
                8,
                "stat",
            ),
        ),
    ),
    (
        "Comparison",
        (
            Chart(
                "Runs, best first",
                "Runs of one task can be compared when their fingerprints are equal: casewarden report shows both.",
                (Query(f"sort_desc(casewarden_run_score{{{SCORES}}})", instant=True),),
                "percentunit",
                12,
                "table",
                most=1,
            ),
            Chart(
                "Dimensions by candidate",
                "Mean of each dimension of the task, by candidate.",
                (
                    Query(
                        f"avg by (task, dimension, candidate) (casewarden_run_dimension_score{{{SCORES}}})",
                        "{{candidate}} {{dimension}}",
                        instant=True,
                    ),
                ),
                "percentunit",
                12,
                "bars",
                most=1,
            ),
        ),
    ),
    (
        "Audits",
        (
            Chart(
                "Mutation score over time",
                "Share of the planted faults that a task's grader caught. Below 100 % scores say less than they seem.",
                (Query(f"min by (task, audit) (casewarden_audit_mutation_score{{{AUDITS}}})", "{{task}} {{audit}}"),),
                "percentunit",
                10,
                most=1,
            ),
            Chart(
                "Weakest margin",
                "How many families of cases caught the fault that the fewest caught: 1 hangs by a thread.",
                (
                    Query(
                        f"min by (task, audit) (casewarden_audit_weakest_margin{{{AUDITS}}})",
                        "{{task}} {{audit}}",
                        instant=True,
                    ),
                ),
                "short",
                8,
                "bars",
            ),
            Chart(
                "Audits that passed",
                "Of the valid audits that there are.",
                (
                    Query(f"sum(casewarden_audit_passed{{{AUDITS}}})", "passed", instant=True),
                    Query(f"count(casewarden_audit_passed{{{AUDITS}}})", "valid", instant=True),
                ),
                "short",
                6,
                "stat",
            ),
        ),
    ),
    (
        "Failures",
        (
            Chart(
                "Attempts by outcome",
                "Attempts that were counted, per minute.",
                (Query(f"60 * sum by (outcome) (rate(casewarden_case_finished_total{RATE}))", "{{outcome}}"),),
                "short",
                12,
                stacked=True,
            ),
            Chart(
                "What broke",
                "Attempts with a reason, per hour.",
                (
                    Query(
                        f'3600 * sum by (reason) (rate(casewarden_case_finished_total{{reason!="none"}}{RATE}))',
                        "{{reason}}",
                    ),
                ),
                "short",
                12,
                stacked=True,
            ),
        ),
    ),
)

OPERATION_ROWS: tuple[tuple[str, tuple[Chart, ...]], ...] = (
    (
        "Now",
        (
            Chart("Leader", "Operators that play runs; one is right.", (Query("sum(casewarden_leader)", instant=True),),
                  "short", 4, "stat"),
            Chart("Runs", "Runs that are not finished.", (Query("sum(casewarden_runs)", instant=True),),
                  "short", 4, "stat"),
            Chart("Cases left", "Cases of these runs that have no verdict yet.",
                  (Query('sum(casewarden_cases{state!="done"})', instant=True),), "short", 4, "stat"),
            Chart("Oldest progress", "Seconds since the slowest run counted or started anything.",
                  (Query("max(casewarden_oldest_progress_seconds)", instant=True),), "s", 4, "stat"),
            Chart("Watch", "Seconds since a watch last heard of the API server.",
                  (Query("time() - min(casewarden_watch_last_event_timestamp_seconds)", instant=True),), "s", 4,
                  "stat"),
            Chart("Version", "What runs.",
                  (Query("casewarden_build_info", "{{version}}", instant=True),
                   Query("casewarden_relay_build_info", "relay {{version}}", instant=True)), "short", 4, "stat"),
        ),
    ),
    (
        "Runs and cases",
        (
            Chart("Runs by phase", "Runs that are not finished, by what they do.",
                  (Query("sum by (phase) (casewarden_runs)", "{{phase}}"),), stacked=True),
            Chart("Runs that ended", "Per hour, by how.",
                  (Query(f"3600 * sum by (result) (rate(casewarden_runs_finished_total{RATE}))", "{{result}}"),)),
            Chart("Cases by state", "Cases of runs that are not finished.",
                  (Query("sum by (state) (casewarden_cases)", "{{state}}"),), stacked=True),
            Chart("Slots", "What the pools of the catalogue have room for, and what runs use, have and want of it.",
                  (Query('sum by (pool, side, state) (casewarden_slots{state!="kept"})',
                         "{{pool}} {{side}} {{state}}"),)),
            Chart("Wait for a slot", "How long the run that waits longest has had no slot.",
                  (Query("max(casewarden_slots_longest_wait_seconds)", "longest"),), "s"),
            Chart("Parallelism", "Attempts that are allowed and that run.",
                  (Query("sum by (kind) (casewarden_parallelism)", "{{kind}}"),)),
            Chart("Case time", "From the candidate's start to the verdict.",
                  _quantiles("casewarden_case_duration_seconds"), "s"),
            Chart("Wait for a start", "From a pod's creation to the start of its task.",
                  _quantiles("casewarden_case_queue_seconds"), "s"),
            Chart("Retries", "Attempts that came to no verdict, per hour, by cause.",
                  (Query(f"3600 * sum by (cause) (rate(casewarden_case_retries_total{RATE}))", "{{cause}}"),)),
            Chart("Throttled", "Pods whose creation was put off, per minute.",
                  (Query(f"60 * sum by (cause) (rate(casewarden_pod_create_throttled_total{RATE}))", "{{cause}}"),)),
            Chart("Evidence that was lost", "Per hour.",
                  (Query(f"3600 * sum by (part) (rate(casewarden_evidence_incomplete_total{RATE}))", "{{part}}"),)),
        ),
    ),
    (
        "Operator",
        (
            Chart("API requests", "Per second, by answer.",
                  (Query(f"sum by (code) (rate(casewarden_api_requests_total{RATE}))", "{{code}}"),), "reqps"),
            Chart("API time", "95th percentile, by verb.",
                  (Query(f"histogram_quantile(0.95, sum by (le, verb) "
                         f"(rate(casewarden_api_request_duration_seconds_bucket{RATE})))", "{{verb}}"),), "s"),
            Chart("Errors", "Failures of the operator itself, per minute.",
                  (Query(f"60 * sum by (type) (rate(casewarden_reconcile_errors_total{RATE}))", "{{type}}"),)),
            Chart("Step time", "Deciding what a run does next.",
                  _quantiles("casewarden_step_duration_seconds"), "s"),
            Chart("Preparing and finishing", "95th percentile.",
                  (Query(f"histogram_quantile(0.95, sum by (le, handler) "
                         f"(rate(casewarden_reconcile_duration_seconds_bucket{RATE})))", "{{handler}}"),), "s"),
            Chart("Event loop", "By how much it was late.", (Query("max(casewarden_event_loop_lag_seconds)", "lag"),),
                  "s"),
            Chart("Writes", "Per second: status, ledger and rows of it.",
                  (Query(f"sum(rate(casewarden_status_writes_total{RATE}))", "status"),
                   Query(f"sum(rate(casewarden_status_write_conflicts_total{RATE}))", "status conflicts"),
                   Query(f"sum by (result) (rate(casewarden_ledger_writes_total{RATE}))", "ledger {{result}}"),
                   Query(f"sum(rate(casewarden_ledger_rows_total{RATE}))", "rows")), "wps"),
        ),
    ),
    (
        "Relay and store",
        (
            Chart("Calls", "Per second, by call and answer.",
                  (Query(f"sum by (call, code) (rate(casewarden_relay_requests_total{RATE}))", "{{call}} {{code}}"),),
                  "reqps"),
            Chart("Call time", "95th percentile, by call.",
                  (Query(f"histogram_quantile(0.95, sum by (le, call) "
                         f"(rate(casewarden_relay_request_seconds_bucket{RATE})))", "{{call}}"),), "s"),
            Chart("Kept", "Bytes per second, by what.",
                  (Query(f"sum by (what) (rate(casewarden_relay_stored_bytes_total{RATE}))", "{{what}}"),), "Bps"),
            Chart("Claims and seals", "Per minute, by outcome.",
                  (Query(f"60 * sum by (outcome) (rate(casewarden_relay_claims_total{RATE}))", "claim {{outcome}}"),
                   Query(f"60 * sum by (outcome) (rate(casewarden_relay_seals_total{RATE}))", "seal {{outcome}}"))),
            Chart("Store away", "Calls refused because the store is full or away, per minute.",
                  (Query(f"60 * sum(rate(casewarden_relay_store_unavailable_total{RATE}))", "refused"),)),
            Chart("Uploads under way", "Bundles that are coming in.",
                  (Query("sum(casewarden_relay_uploads)", "uploads"),)),
        ),
    ),
    (
        "Models",
        (
            Chart("Model calls", "Per minute, by endpoint and what became of them.",
                  (Query(f"60 * sum by (endpoint, outcome) (rate(casewarden_relay_model_calls_total{RATE}))",
                         "{{endpoint}} {{outcome}}"),)),
            Chart("Tokens", "Per minute, by endpoint and kind.",
                  (Query(f"60 * sum by (endpoint, kind) (rate(casewarden_relay_model_tokens_total{RATE}))",
                         "{{endpoint}} {{kind}}"),)),
            Chart("Cost", "Per hour, by endpoint, in the currency of its price; endpoints without a price have none.",
                  (Query(f"3600 * sum by (endpoint) (rate(casewarden_relay_model_cost_total{RATE}))",
                         "{{endpoint}}"),)),
            Chart("Budgets", "The largest share of its budget that a run has used which called lately.",
                  (Query("max by (endpoint) (casewarden_relay_model_budget_used_ratio)", "{{endpoint}}"),),
                  "percentunit", most=1),
            Chart("Calls now", "Calls that an endpoint has, and those that wait for it.",
                  (Query("sum by (endpoint) (casewarden_relay_model_slots_used)", "{{endpoint}}"),
                   Query("sum by (endpoint) (casewarden_relay_model_waiting)", "{{endpoint}} waiting"))),
        ),
    ),
)  # fmt: skip


def expressions() -> list[str]:
    """Return the expression of every query of every panel."""
    rows = (*SCORE_ROWS, *OPERATION_ROWS)
    return [query.expr for _, charts in rows for chart in charts for query in chart.queries]
