"""Results of a sweep."""
from optuna.trial import TrialState

_WORDS = {TrialState.COMPLETE: "complete", TrialState.PRUNED: "behind", TrialState.RUNNING: "running", TrialState.FAIL: "failed"}
# The best first; "diverged" is a trial that was ended by its own error, after it had begun to learn.
_ORDER = ["complete", "behind", "running", "diverged", "failed"]


def rows(study):
    """A dict for each trial that has begun, the best first: number, state, value (the best test, None if there is none),
    iterations, values by field, and why it failed ("" if it did not). Trials that were ended early come after the whole ones."""
    falls = study.definition.falls
    better = min if falls else max
    found = []
    for trial in study.optuna.get_trials(deepcopy=False):
        if trial.state == TrialState.WAITING:
            continue
        tests = trial.intermediate_values
        found.append({"number": trial.number, "state": "diverged" if trial.state == TrialState.PRUNED and "why" in trial.user_attrs else _WORDS[trial.state],
                      "value": better(tests.values(), default=None),
                      "iterations": trial.user_attrs.get("iterations", max(tests, default=0)), "values": dict(trial.params),
                      "why": trial.user_attrs.get("why", "")})
    return sorted(found, key=lambda row: (_ORDER.index(row["state"]), row["value"] is None,
                                          0 if row["value"] is None else row["value"] if falls else -row["value"], row["number"]))


def table(study, most=20):
    """The best trials as text, in columns."""
    found = rows(study)
    fields = [parameter.field for parameter in study.parameters]
    lines = [["trial", study.definition.metric, "iterations", "state", *fields]]
    for row in found[:most]:
        value = "" if row["value"] is None else f"{row['value']:.6g}"
        lines.append([str(row["number"]), value, str(row["iterations"]), row["state"], *(_text(row["values"].get(field, "")) for field in fields)])
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    text = "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)
    return text + (f"\n... and {len(found) - most} more" if len(found) > most else "")


def _text(value):
    return f"{value:.6g}" if isinstance(value, float) else str(value)
