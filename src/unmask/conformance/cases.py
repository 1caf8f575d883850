"""Golden decoder cases as requests: the rule of this build for each upstream function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from unmask.conformance.loop_cases import LOOP_CASES
from unmask.conformance.plan import EOS, CaseConfig, CasePlan, KnownDifference, Make, NotOffered
from unmask.conformance.plan import block_of as _block
from unmask.conformance.plan import settings_of as _settings
from unmask.decoding.options import Eos
from unmask.errors import UnmaskError
from unmask.rules.modulators import PositionCalibration
from unmask.rules.rule import Rule
from unmask.rules.select import Threshold

EOT = 58  # of the toy denoisers
_SHIFTED = ("dream", "fastdllm_dream", "klass_dream")  # unless the config says otherwise
# Keys without an effect on the useful forwards; the lengths and files they name are always these.
_IDLE = ("answer_length", "background", "expected_tpf", "maximum_unroll", "use_float64")
SCORES = {"maskgit_plus": "confidence", "topk_margin": "margin", "entropy": "entropy"}
_GATE = "threshold({tau}, test=ge) | upstream({beta}, window={W}, unit={unit})"
_SELECTIONS = {
    "topk": "top({k})",
    "threshold": "threshold({tau})",
    "eb": "eb({gamma})",
    "klass": "klass({conf}, kl={kl}, n={n})",
    "ce": _GATE,
}


def plan_of(case: dict[str, Any], folder: Path) -> CasePlan:
    """The plan that should reproduce a golden case."""
    config, family = CaseConfig(case["config"]), case["id"].split("/")[0]
    try:
        plan = _plan_of(case, config, family, folder)
    except UnmaskError as error:
        raise NotOffered(f"its config makes no rule: {error}") from None
    config.ignore(*_IDLE)
    return replace(plan, unread=config.unread())


def _plan_of(case: dict[str, Any], config: CaseConfig, family: str, folder: Path) -> CasePlan:
    if not config.get("decoder"):
        return CasePlan(_settings(config, _swd_rule(config)), shift=config.get("shift", False))
    make = _UPSTREAM.get(family) or LOOP_CASES.get(family)
    if make is None:
        raise NotOffered(f"the family {family!r} is not known")
    if "BUG" in case["id"] or "QUIRK" in case["id"]:
        raise KnownDifference(case.get("notes") or "records an upstream defect")
    if config.get("temperature") or config.get("alg_temp") or config.get("remasking") == "random":
        raise KnownDifference("depends on the order in which upstream draws random numbers")
    shift = config.get("shift_logits", family in _SHIFTED)
    return replace(make(config, folder), shift=shift)


def _swd_rule(config: CaseConfig) -> str:
    parts = [
        config["metric"],
        f"swd({config['lam']}, kl={config['kl_dir']}, start={config['first_step']}, "
        f"form={config['entropy_form']}, scope={config.get('history_scope', 'sequence')})",
    ]
    if "credit" in config:
        parts.insert(0, "credit({alpha}, {beta}, {gamma})".format_map(config.part("credit")))
    if "frontier" in config:
        parts.append(_frontier(config.part("frontier")))
    select = config.part("sel")
    knobs = config.part("klass") if "klass" in config else select
    parts.append(select.word("policy", _SELECTIONS).format_map(knobs))
    return " | ".join(parts)


def _frontier(frontier: CaseConfig) -> str:
    if frontier["unit"] == "dcd":
        return "frontier({w}, most={s_max})".format_map(frontier)
    return "frontier({w}, unit={unit})".format_map(frontier)


def _llada(c: CaseConfig, folder: Path) -> CasePlan:
    eos: Eos = "keep"
    stops: tuple[int, ...] = (EOS,)
    if c.get("logits_eos_inf"):
        eos = "suppress"
    elif c.get("confidence_eos_eot_inf"):
        eos, stops = "last", (EOS, EOT)
    settings = _settings(c, f"confidence | static({c['steps']})", eos)
    return CasePlan(settings, guidance=c.get("cfg_scale", 0.0), stop_ids=stops)


def dream_rule(c: CaseConfig) -> str:
    """The rule of Dream's own sampler."""
    if c["alg"] == "origin":
        return f"confidence | origin({c['steps']}, eps={c['eps']})"
    return f"{c.word('alg', SCORES)} | timesteps({c['steps']}, eps={c['eps']})"


def _dream(c: CaseConfig, folder: Path) -> CasePlan:
    return CasePlan(_settings(c, dream_rule(c)), seed=c.get("torch_manual_seed", 0))


def _fastdllm(c: CaseConfig, folder: Path) -> CasePlan:
    if c.get("threshold") is None:
        return CasePlan(_settings(c, f"confidence | static({c['steps']})"))
    rule = f"confidence | threshold({c['threshold']}, test=ge)"
    return CasePlan(_settings(c, rule, _fastdllm_eos(c)))


def _fastdllm_eos(c: CaseConfig) -> Eos:
    return "fill" if c.get("early_stop") else "keep"


def _klass_alg(c: CaseConfig, folder: Path) -> CasePlan:
    alg = c["decoder"].removeprefix("klass_alg_")
    if alg == "entropy":
        raise KnownDifference("upstream scores +entropy: the most uncertain token goes first")
    if alg == "random":
        raise KnownDifference("depends on the order in which upstream draws random numbers")
    # Upstream takes the largest probability for every other name, such as "default".
    score = "margin" if alg == "topk_margin" else "confidence"
    return CasePlan(_settings(c, f"{score} | static({c['steps']})"))


def _by_rule(rule: str, eos: Callable[[CaseConfig], Eos] = lambda c: "keep") -> Make:
    """A plan that needs only a rule, with the values of the case's config filled in."""
    return lambda c, folder: CasePlan(_settings(c, rule.format_map(c), eos(c)))


def _klass(test: str) -> Make:
    knobs = "{conf_threshold}, kl={kl_threshold}, n={kl_history_length}"
    rule = f"confidence | klass({knobs}{test})"

    def plan(c: CaseConfig, folder: Path) -> CasePlan:
        if c["steps"] < c["gen_length"]:
            raise KnownDifference("with fewer steps than tokens upstream leaves masks")
        if c["unmask_strategy"] == "random":
            raise KnownDifference("depends on the order in which upstream draws random numbers")
        limit = c.word("unmask_strategy", {"all": "", "max_conf": " | cap(1)"})
        return CasePlan(_settings(c, rule.format_map(c) + limit))

    return plan


def _dinfer_eos(c: CaseConfig) -> Eos:
    end = c.get("eos_id", EOS)
    if end not in (EOS, -1):
        raise NotOffered(f"eos_id {end} is not the toy denoisers' {EOS}")
    return "block" if c.get("early_stop") and end == EOS else "keep"


def _pc_sampler(c: CaseConfig, folder: Path) -> CasePlan:
    weight = PositionCalibration(c["lambda"], c["alpha"], str(folder / "background_freq.json"))
    plain = Rule.parse(f"confidence | static({c['steps']})")
    return CasePlan(_settings(c, Rule(plain.score, plain.select, (weight,))))


def _pc_static(score: str) -> Make:
    def plan(c: CaseConfig, folder: Path) -> CasePlan:
        if _block(c.get("block_length"), c["gen_length"]) is not None:
            raise KnownDifference("upstream does not exclude later blocks")
        return CasePlan(_settings(c, f"{score} | static({c['steps']})"))

    return plan


def _d2_vanilla(c: CaseConfig, folder: Path) -> CasePlan:
    eos: Eos = "stop" if c.get("stop_until_eos") else "keep"
    rule = f"{c.word('alg', SCORES)} | top({c['num_transfer_tokens']})"
    return CasePlan(_settings(c, rule, eos), stop_ids=(c.get("eos_token_id", EOS),))


def _d2_threshold(c: CaseConfig, folder: Path) -> CasePlan:
    rule = (
        f"{c.word('alg', SCORES)} | threshold({c['threshold']}, test=ge) "
        f"| floor({c['num_transfer_tokens']})"
    )
    return CasePlan(_settings(c, rule))


def _d2_ar(c: CaseConfig, folder: Path) -> CasePlan:
    if c["threshold"] is None:
        raise KnownDifference("without a threshold upstream takes the whole block in one step")
    rule = f"confidence | ar({c['threshold']}, k={c['num_transfer_tokens']})"
    return CasePlan(_settings(c, rule))


def _d2_eb(c: CaseConfig, folder: Path) -> CasePlan:
    if c["alg"] != "entropy":
        raise KnownDifference("upstream takes the maximum over the batch axis, which is not EB")
    return CasePlan(_settings(c, f"entropy | eb({c['gamma']})"))


def _dllm_plugin(c: CaseConfig, folder: Path) -> CasePlan:
    tau = Threshold(c["commit_confidence_threshold"]).tau
    rule = f"confidence | threshold({tau}) | floor(1, steps={c['denoise_steps']})"
    return CasePlan(_settings(c, rule))


def _rpd_ce(c: CaseConfig, folder: Path) -> CasePlan:
    gate = _GATE.format(
        tau=c["threshold"], beta=c["budget"], W=c["fallback_window"], unit=c["fallback_unit"]
    )
    return CasePlan(_settings(c, f"confidence | {gate}"))


_DINFER_THRESHOLD = "confidence | threshold({threshold}, test=ge, slack=1e-05)"
_UPSTREAM: dict[str, Make] = {
    "credit": _by_rule(
        "credit({credit_alpha}, {decay_beta}, {boost_gamma}) | " + _DINFER_THRESHOLD, _dinfer_eos
    ),
    "d2_ar": _d2_ar,
    "d2_certainty": _by_rule("confidence | certainty({sigma}) | top({num_transfer_tokens})"),
    "d2_eb": _d2_eb,
    "d2_factor": _by_rule("confidence | factor({factor}, last=drop)"),
    "d2_klass": _by_rule(
        "confidence | klass({threshold}, kl={kl_threshold}, n={kl_history_length}, "
        "test=ge, gate=no)"
    ),
    "d2_threshold": _d2_threshold,
    "d2_vanilla": _d2_vanilla,
    "dinfer_hierarchy": _by_rule(
        "confidence | hierarchy({threshold}, low={low_threshold})", _dinfer_eos
    ),
    "dinfer_threshold": _by_rule(_DINFER_THRESHOLD, _dinfer_eos),
    "dllm_plugin": _dllm_plugin,
    "dream": _dream,
    "eb_pc": _by_rule("{rank} | eb({gamma})"),
    "eb_unid2": _by_rule("{rank} | eb({gamma})"),
    "fastdllm": _fastdllm,
    "fastdllm_dream": _by_rule(
        "confidence | threshold({threshold}, test=ge) | cap(1, steps={steps})"
    ),
    "fastdllm_factor": _by_rule("confidence | factor({factor}, last=take)", _fastdllm_eos),
    "klass": _klass(test=""),
    "klass_alg": _klass_alg,
    "klass_dream": _klass(test=", test=ge"),
    "llada": _llada,
    "localleap": _by_rule(
        "confidence | localleap({threshold}, low={relaxed_threshold}, r={radius})"
    ),
    "pc_entropy": _pc_static("entropy"),
    "pc_margin": _pc_static("margin"),
    "pc_sampler": _pc_sampler,
    "rpd_ce": _rpd_ce,
    "sglang_low_confidence": _by_rule("confidence | threshold({threshold})"),
}
