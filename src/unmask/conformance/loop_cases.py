"""Golden cases of decoders that need memory, edits, other windows or a growing canvas."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from unmask.conformance.plan import (
    CaseConfig,
    CasePlan,
    KnownDifference,
    Make,
    block_of,
    settings_of,
    toy_end,
)
from unmask.decoding.lengths import Growth
from unmask.decoding.request import Settings
from unmask.rules.rule import Rule


def _less_llada(c: CaseConfig, folder: Path) -> CasePlan:
    knobs = "{conf_threshold}, drift={drift_threshold}, persist={persistence_len}, steps={steps}"
    return CasePlan(settings_of(c, f"confidence | less({knobs.format_map(c)})"))


def _less_dream(c: CaseConfig, folder: Path) -> CasePlan:
    knobs = (
        "{conf_threshold}, drift={drift_threshold}, persist={persistence_len}, steps={steps}, "
        "patience={frontier_patience}, window={frontier_window}"
    ).format_map(c)
    ends = ", eos_conf={eos_conf_threshold}, eos_anneal={eos_conf_anneal}, "
    ends += "eos_floor={eos_conf_floor}, eos_drift={eos_js_mult}"
    ends, least = ends.format_map(c), c["min_new_tokens_before_eos"]
    ends += f", stop={'yes' if c['enable_eos_early_stop'] else 'no'}"
    if toy_end(c) is None:  # then all of upstream's rules for end tokens are off
        ends, least = ", eos_conf=0, eos_floor=0, eos_drift=1, stop=no", 0
    knobs += ends
    first = f"no_end({least}, steps={c['steps']}) | " if least else ""
    settings = settings_of(c, f"{first}confidence | less_dream({knobs})")
    return CasePlan(settings, own_end=True)


def _prophet(c: CaseConfig, folder: Path) -> CasePlan:
    bars = "early={early}, mid={mid}, late={late}".format_map(c.part("thresholds"))
    # Upstream looks at 5 positions, whatever it is told.
    knobs = f"{c['answer_start']}, steps={c['steps']}, {bars}, length=5"
    settings = settings_of(c, f"confidence | static({c['steps']}) | prophet({knobs})")
    given = {int(place): token for place, token in (c["constraints"] or {}).items()}
    return CasePlan(settings, constraints=tuple(given.items()))


def _saber(c: CaseConfig, folder: Path) -> CasePlan:
    rule = f"confidence | saber({c['n']}) | backtrack({c['n']})"
    return CasePlan(settings_of(c, rule), forwards="all")


def _joint_threshold(c: CaseConfig, folder: Path) -> CasePlan:
    penalty = f"penalty({c['penalty_lambda']}) | " if c["penalty_lambda"] else ""
    edit = f"edit({c['edit_threshold']}, steps={c['max_post_edit_steps']})"
    rule = f"{penalty}confidence | threshold({c['threshold']}) | {edit}"
    return CasePlan(settings_of(c, rule), forwards="all")


def _adablock(c: CaseConfig, folder: Path) -> CasePlan:
    ids = "-".join(map(str, c["delimiter_ids"]))
    window = f"adablock({ids}, tau={c['delimiter_threshold']}, part={c['window_fraction']})"
    rule = f"{window} | confidence | threshold({c['threshold']}, test=ge)"
    block = block_of(c["default_block_length"], c["gen_length"])
    return CasePlan(replace(settings_of(c, rule), block=block), forwards="all")


def _slowfast(c: CaseConfig, folder: Path) -> CasePlan:
    knobs = (
        "{high_confidence_threshold}, rounds={k_exploration_steps}, "
        "reach={cycle_len_confidence_threshold}, window={stability_window}, std={stability_std}"
    )
    settings = settings_of(c, f"confidence | slowfast({knobs.format_map(c)})")
    return CasePlan(settings, forwards="writing")  # upstream explores full blocks as well


def _wino(c: CaseConfig, folder: Path) -> CasePlan:
    rule = f"confidence | wino({c['threshold']}) | narrow({c['threshold_back']})"
    return CasePlan(settings_of(c, rule), forwards="all")


def _d2_wino(c: CaseConfig, folder: Path) -> CasePlan:
    raise KnownDifference("upstream changes its block in place, so re-masked tokens are lost")


def _daedal(c: CaseConfig, folder: Path) -> CasePlan:
    most, _ = c["max_gen_length"], toy_end(c)
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
    block = block_of(c["block_length"], most)
    settings = Settings(Rule.parse(rule), block, allow_mask=True, growth=growth)
    return CasePlan(settings, length=most)


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
