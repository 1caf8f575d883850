"""Golden cases of decoders that need memory, edits, other windows or a growing canvas."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from unmask.conformance.plan import CasePlan, KnownDifference, Make, settings_of
from unmask.decoding.lengths import Growth


def _less_llada(c: dict[str, Any], folder: Path) -> CasePlan:
    knobs = "{conf_threshold}, drift={drift_threshold}, persist={persistence_len}, steps={steps}"
    return CasePlan(settings_of(c, f"confidence | less({knobs.format(**c)})"))


def _less_dream(c: dict[str, Any], folder: Path) -> CasePlan:
    knobs = (
        "{conf_threshold}, drift={drift_threshold}, persist={persistence_len}, steps={steps}, "
        "patience={frontier_patience}, window={frontier_window}"
    ).format(**c)
    if c["eos_id"] is None:
        knobs += ", eos_conf=0, eos_floor=0, eos_drift=1, stop=no"
    else:
        knobs += ", eos_conf={eos_conf_threshold}, eos_anneal={eos_conf_anneal}, ".format(**c)
        knobs += "eos_floor={eos_conf_floor}, eos_drift={eos_js_mult}".format(**c)
        knobs += f", stop={'yes' if c['enable_eos_early_stop'] else 'no'}"
    least = c["min_new_tokens_before_eos"]
    first = f"no_end({least}, steps={c['steps']}) | " if least else ""
    settings = settings_of(c, f"{first}confidence | less_dream({knobs})")
    return CasePlan(settings, shift=c["shift_logits"], own_end=True)


def _prophet(c: dict[str, Any], folder: Path) -> CasePlan:
    bars = "early={early}, mid={mid}, late={late}".format(**c["thresholds"])
    # Upstream looks at 5 positions, whatever it is told.
    knobs = f"{c['answer_start']}, steps={c['steps']}, {bars}, length=5"
    settings = settings_of(c, f"confidence | static({c['steps']}) | prophet({knobs})")
    given = {int(place): token for place, token in (c["constraints"] or {}).items()}
    return CasePlan(settings, constraints=tuple(given.items()))


def _saber(c: dict[str, Any], folder: Path) -> CasePlan:
    rule = f"confidence | saber({c['n']}) | backtrack({c['n']})"
    return CasePlan(settings_of(c, rule), forwards="all")


def _joint_threshold(c: dict[str, Any], folder: Path) -> CasePlan:
    penalty = f"penalty({c['penalty_lambda']}) | " if c["penalty_lambda"] else ""
    edit = f"edit({c['edit_threshold']}, steps={c['max_post_edit_steps']})"
    rule = f"{penalty}confidence | threshold({c['threshold']}) | {edit}"
    return CasePlan(settings_of(c, rule), forwards="all")


def _adablock(c: dict[str, Any], folder: Path) -> CasePlan:
    ids = "-".join(map(str, c["delimiter_ids"]))
    window = f"adablock({ids}, tau={c['delimiter_threshold']}, part={c['window_fraction']})"
    rule = f"{window} | confidence | threshold({c['threshold']}, test=ge)"
    plain = settings_of({**c, "block_length": c["default_block_length"]}, rule)
    return CasePlan(plain, forwards="all")


def _slowfast(c: dict[str, Any], folder: Path) -> CasePlan:
    knobs = (
        "{high_confidence_threshold}, rounds={k_exploration_steps}, "
        "reach={cycle_len_confidence_threshold}, window={stability_window}, std={stability_std}"
    )
    settings = settings_of(c, f"confidence | slowfast({knobs.format(**c)})")
    return CasePlan(settings, forwards="writing")  # upstream explores full blocks as well


def _wino(c: dict[str, Any], folder: Path) -> CasePlan:
    rule = f"confidence | wino({c['threshold']}) | narrow({c['threshold_back']})"
    return CasePlan(settings_of(c, rule), forwards="all")


def _d2_wino(c: dict[str, Any], folder: Path) -> CasePlan:
    raise KnownDifference("upstream changes its block in place, so re-masked tokens are lost")


def _daedal(c: dict[str, Any], folder: Path) -> CasePlan:
    most = c["max_gen_length"]
    growth = Growth(
        start=c["initial_gen_length"],
        most=most,
        factor=c["expansion_factor"],
        sure=c["eos_confidence_threshold"],
        surer=c["expand_eos_confidence_threshold"],
        low=c["low_conf_threshold"],
        ends=c["eos_check_tokens"],
    )
    rule = f"confidence | threshold({c['high_conf_threshold']})"
    settings = settings_of({**c, "gen_length": most}, rule)
    return CasePlan(replace(settings, growth=growth), length=most)


LOOP_CASES: dict[str, Make] = {
    "adablock": _adablock,
    "d2_wino": _d2_wino,
    "daedal": _daedal,
    "less_dream": _less_dream,
    "less_llada": _less_llada,
    "prophet": _prophet,
    "saber": _saber,
    "sglang_joint_threshold": _joint_threshold,
    "slowfast": _slowfast,
    "wino": _wino,
}
