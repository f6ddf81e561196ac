"""summary.md: the machine, the stages and the figures, as docs/MEASUREMENTS.md takes them."""
import json
import statistics

RATES = {
    "B/s": (1e12, "TB/s", 1e9, "GB/s"),
    "FLOP/s": (1e12, "TFLOP/s", 1e9, "GFLOP/s"),
}
SHOWN = (  # though they have one sample
    "mismatches",
    "whole_mismatches",
    "checksum_changes",
    "flop_per_cycle",
    "flop_per_cycle_first",
    "largest_error_share",
    "rate_kept",
    "slice_worst",
    "time_to_steady",
    "xid_events",
    "ecc_uncorrected",
    "query_errors",
)
CONDITIONS = (
    "algorithm",
    "algorithms_refused",
    "choice_margin",
    "driver_version",
    "sm_clock_counted_hz",
    "sm_clock_mean_hz",
    "sm_clock_drift",
    "temperature_end_c",
    "power_limit_w",
    "power_mean_w",
    "steady",
    "unsteady_because",
    "throttle_power_cap_s",
    "trial_rates",
    "other_processes",
    "ecc_uncorrected_delta",
    "xid_events_delta",
    "watch_s",
    "launch_excluded",
    "gpu_errors_delta",
)


def lines_of(path):
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return
    for line in text.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            yield entry


def value_text(value, unit):
    if unit in RATES:
        high, high_word, low, low_word = RATES[unit]
        return f"{value / high:.3f} {high_word}" if value >= high else f"{value / low:.1f} {low_word}"
    return f"{value:.4g} {unit}" if unit != "1" else f"{value:g}"


def figures(path, name):
    """Rows of a record: medians of what has several samples and of rates, and counts."""
    rows = []
    for entry in lines_of(path):
        one = entry.get("measurement")
        if not one or "slice" in one.get("at", {}):
            continue
        samples = one["samples"]
        if len(samples) < 3 and one["metric"] not in SHOWN and one["unit"] not in RATES:
            continue
        at = " ".join(f"{key} {value}" for key, value in one.get("at", {}).items())
        rows.append(
            (
                name,
                one["metric"] + (f" ({at})" if at else ""),
                value_text(statistics.median(samples), one["unit"]),
                len(samples),
            )
        )
    return rows


def conditions(path):
    return {
        entry["condition"]["name"]: entry["condition"]["value"]
        for entry in lines_of(path)
        if "condition" in entry and entry["condition"]["name"] in CONDITIONS
    }


def yardsticks(out):
    """Name, value and error of every line of a yardstick; of a step with its batch."""
    for path in sorted((out / "records").glob("*yardstick.out")):
        for entry in lines_of(path):
            if "yardstick" in entry:
                batch = f" (batch {entry['batch']} context {entry['context']})" if "batch" in entry else ""
                yield entry["yardstick"] + batch, entry.get("value"), entry.get("error", "")


def unit_of_yardstick(name):
    return "FLOP/s" if name.startswith("gemm") else "s" if ".step" in name else "1" if ".ratio" in name else "B/s"


def records_of(out):
    for path in sorted((out / "records").glob("*.out")):
        yield path.stem, path
    for path in sorted((out / "run/records").glob("*/*/*.jsonl")):
        yield "run/" + path.parent.parent.name, path


def verdict_of(out):
    try:
        verdict = json.loads((out / "run/verdict.json").read_text())
    except (OSError, ValueError):
        return "none"
    failed = [result for result in verdict.get("results", []) if result.get("outcome") != "pass"]
    words = "; ".join(
        f"{result['requirement']} {result['outcome']}: {result.get('reason', '')}" for result in failed[:20]
    )
    return f"{verdict.get('overall', '?')}; {len(failed)} cells did not pass. {words}"


def write(out, results, libraries, clock):
    text = [
        "# First light",
        "",
        f"{clock.spent():.0f} s of {clock.seconds:.0f} s. Libraries: "
        + (", ".join(f"{name} at {path}" for name, path in sorted(libraries.items())) or "none found")
        + ".",
        "",
        "| stage | outcome | s | exit code | last words |",
        "|---|---|---|---|---|",
    ]
    for result in results:
        words = result.last_words.replace("|", "\\|")[:160]
        text.append(
            f"| {result.name} | {result.outcome}{'' if result.required else ' (not required)'} | {result.seconds:.1f} | "
            f"{'' if result.code is None else result.code} | {words} |"
        )
    text += [
        "",
        f"Verdict of the one-GPU profile: {verdict_of(out)}",
        "",
        "| record | metric | median | samples |",
        "|---|---|---|---|",
    ]
    for name, path in records_of(out):
        text += [f"| {record} | {metric} | {value} | {count} |" for record, metric, value, count in figures(path, name)]
    text += ["", "| yardstick | value |", "|---|---|"]
    for name, value, error in yardsticks(out):
        words = value_text(value, unit_of_yardstick(name)) if value is not None else error[:120]
        text.append(f"| {name} | {words} |")
    text += ["", "| record | conditions |", "|---|---|"]
    for name, path in records_of(out):
        seen = conditions(path)
        if seen:
            text.append(f"| {name} | " + ", ".join(f"{key} {value}" for key, value in sorted(seen.items())) + " |")
    (out / "summary.md").write_text("\n".join(text) + "\n")
