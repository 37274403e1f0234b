"""The tables of the results, as Markdown; the first of them is the README's too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks import aims
from benchmarks.turns import AGAIN

Workloads = Mapping[str, Mapping[str, Any]]


def ratio_table(results: Mapping[str, Any], *, quartiles: bool) -> str:
    """Return the ratios, a line for each variant and a column for each workload."""
    workloads: Workloads = results["workloads"]
    found = list(dict.fromkeys(variant for each in workloads.values() for variant in each["variants"]))
    variants = [AGAIN, *(variant for variant in found if variant != AGAIN)]
    plain = ["plain loop, ms a step", *(f"{each['plain_ms']:.3g}" for each in workloads.values())]
    rows = [[v, *(_ratio(v, name, each, quartiles) for name, each in workloads.items())] for v in variants]
    return _table(["", *workloads], [plain, *rows])


def rounds_table(workloads: Workloads) -> str:
    """Return when, where and how often each workload was measured."""
    rows = [
        [
            name,
            str(each["parameters"]),
            each["date"],
            f"{each['rounds']} / {each['habit_rounds']}",
            ", ".join(f"{key} {value}" for key, value in each["machine"].items()),
        ]
        for name, each in workloads.items()
    ]
    return _table(["", "parameters", "measured on", "rounds, whygrad / habits", "with"], rows)


def default_table(workloads: Workloads) -> str:
    """Return what the default mode takes at the start and after it, and what whygrad says of itself."""
    rows = []
    for name, each in _having("default", workloads):
        default = each["default"]
        rows.append(
            [
                name,
                f"{default['after']['ratio']:.3f}",
                f"{default['start_s']:.1f} s in {default['start_steps']} steps",
                f"{default['own_s']:.1f} s of {default['duration_s']:.0f} s ({_share(default):.1%})",
                f"{default['uncounted']:.2f}",
            ]
        )
    head = ["", "after the start", "the start took", "the verdict says", "took / counted"]
    return _table(head, rows)


def kernel_table(workloads: Workloads) -> str:
    """Return what the kernels take, in reads of the gradients and beside the lesson's two numbers."""
    rows = []
    for name, each in _having("in_place", workloads):
        place = each["in_place"]
        rows.append(
            [
                name,
                f"{each['megabytes']:.3g}",
                f"{1e3 * place['one read']:.3g}",
                _reads(place, "statistics"),
                _reads(place, "with histogram"),
                _reads(place, "with full histogram"),
                aims.at_most(place["statistics"] / place["two numbers"], aims.LESSON_SHARE),
            ]
        )
    reads = ("statistics", "and sampled histogram", "and full histogram")
    return _table(["", "MB", "one read, ms", *reads, "statistics / lesson"], rows)


def storage_table(workloads: Workloads) -> str:
    """Return what recording every step stores."""
    rows = []
    for name, each in _having("stored", workloads):
        stored = each["stored"]
        rows.append(
            [
                name,
                f"{stored['stored_bytes']:,.0f}",
                aims.at_most(stored["row_bytes"], aims.ROW_BYTES, ".0f"),
                f"{stored['once_bytes'] / 1024:,.0f}",
            ]
        )
    return _table(["", "bytes a step", "a row of statistics", "once, KB"], rows)


def memory_table(workloads: Workloads) -> str:
    """Return what recording every step adds to the memory."""
    rows = []
    for name, each in _having("memory", workloads):
        memory = each["memory"]
        largest = aims.LARGEST * each["largest_mb"]
        rows.append(
            [
                name,
                aims.at_most(memory["added_mb"], largest, ".1f", ".3g"),
                f"{memory['steps_mb'] - memory['added_mb']:+.1f}",
                f"{memory['batch_mb'] - memory['steps_mb']:+.1f}",
                f"{memory['code_mb']:.1f}",
            ]
        )
    return _table(["", "added, MB", "with three times the steps", "with twice the batch", "code, MB"], rows)


def startup_table(startup: Mapping[str, Mapping[str, float]]) -> str:
    """Return what starting takes."""
    rows = []
    for name, found in startup.items():
        aim = aims.START_MS.get(name)
        text = f"{found['median_ms']:.0f}"
        outcome = None if aim is None else aims.Outcome.MET if found["median_ms"] <= aim else aims.Outcome.MISSED
        shown = text if outcome is None else aims.beside_aim(text, str(aim), outcome)
        rows.append([name, shown, f"{found['low_ms']:.0f}-{found['high_ms']:.0f}"])
    return _table(["", "ms, median", "quartiles"], rows)


def parts_table(workloads: Workloads) -> str:
    """Return microseconds of a recorded step by part of the probe, a column for each workload."""
    columns = {name: _by_part(each["parts"]) for name, each in _having("parts", workloads)}
    total = {part: sum(column.get(part, 0.0) for column in columns.values()) for c in columns.values() for part in c}
    shown = sorted((part for part in total if part not in _LAST), key=lambda part: -total[part])
    rows = [
        [part, *(f"{column.get(part, 0.0):,.0f}" for column in columns.values())]
        for part in (*shown, *_LAST)
        if any(abs(column.get(part, 0.0)) >= 0.5 for column in columns.values())
    ]
    return _table(["microseconds a step", *columns], rows)


_REST, _ALL = "beside them", "whygrad in all"
_LAST = (_REST, _ALL)


def _by_part(parts: Mapping[str, Any]) -> dict[str, float]:
    found: dict[str, float] = {}
    for row in parts["rows"]:
        found[row["part"]] = found.get(row["part"], 0.0) + row["us"]
    whole = parts["watched_us"] - parts["plain_us"]
    return found | {_REST: whole - sum(found.values()), _ALL: whole}


def _having(measured: str, workloads: Workloads) -> list[tuple[str, Mapping[str, Any]]]:
    return [(name, each) for name, each in workloads.items() if measured in each]


def _ratio(variant: str, workload: str, each: Mapping[str, Any], quartiles: bool) -> str:
    found = each["variants"].get(variant)
    if found is None:
        return "-"
    text = f"{found['ratio']:.2f}"
    if quartiles:
        text += f" [{found['low']:.2f}-{found['high']:.2f}]"
    noise = aims.noise_of(each["variants"])
    aim = aims.aim_of(variant, workload)
    if aim is not None:
        return aims.beside_aim(text, f"{aim:.2f}", aims.judge(found["ratio"], aim, noise))
    is_noise = variant != AGAIN and abs(found["ratio"] - 1) <= noise
    return f"{text} (not resolved)" if is_noise else text


def _reads(place: Mapping[str, float], kernel: str) -> str:
    reads = place[kernel] / place["one read"]
    aim = aims.READS.get(kernel)
    return f"{reads:.2f}" if aim is None else aims.at_most(reads, aim)


def _share(default: Mapping[str, float]) -> float:
    return default["own_s"] / default["duration_s"]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
