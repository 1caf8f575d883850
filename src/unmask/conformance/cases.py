"""Golden decoder cases as requests: the rule of this build for each upstream function."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from unmask.conformance.loop_cases import LOOP_CASES
from unmask.conformance.plan import EOS, CasePlan, KnownDifference, Make, NotOffered
from unmask.conformance.plan import block_of as _block
from unmask.conformance.plan import settings_of as _settings
from unmask.decoding.options import Eos
from unmask.rules.modulators import PositionCalibration
from unmask.rules.rule import Rule
from unmask.rules.select import Threshold

EOT = 58  # of the toy denoisers
SCORES = {"maskgit_plus": "confidence", "topk_margin": "margin", "entropy": "entropy"}
_GATE = "threshold({tau}, test=ge) | upstream({beta}, window={W}, unit={unit})"
_SELECTIONS = {"topk": "top({k})", "threshold": "threshold({tau})", "eb": "eb({gamma})"}


def plan_of(case: dict[str, Any], folder: Path) -> CasePlan:
    """The plan that should reproduce a golden case."""
    config, family = case["config"], case["id"].split("/")[0]
    if "decoder" not in config:
        return CasePlan(_settings(config, _swd_rule(config)), shift=config.get("shift", False))
    make = _UPSTREAM.get(family) or LOOP_CASES.get(family)
    if make is None:
        raise NotOffered(f"the family {family!r} is not known")
    if "BUG" in case["id"] or "QUIRK" in case["id"]:
        raise KnownDifference(case.get("notes") or "records an upstream defect")
    if config.get("temperature") or config.get("alg_temp") or config.get("remasking") == "random":
        raise KnownDifference("depends on the order in which upstream draws random numbers")
    return make(config, folder)


def _swd_rule(config: dict[str, Any]) -> str:
    parts = [
        config["metric"],
        f"swd({config['lam']}, kl={config['kl_dir']}, start={config['first_step']}, "
        f"form={config['entropy_form']}, scope={config.get('history_scope', 'sequence')})",
    ]
    if "credit" in config:
        parts.insert(0, "credit({alpha}, {beta}, {gamma})".format(**config["credit"]))
    select = config["sel"]
    if "frontier" in config:
        parts.append(_frontier(config["frontier"]))
    if "klass" in config:
        parts.append("klass({conf}, kl={kl}, n={n})".format(**config["klass"]))
    elif select["policy"] in _SELECTIONS:
        parts.append(_SELECTIONS[select["policy"]].format(**select))
    elif select["policy"] == "ce":
        parts.append(_GATE.format(**select))
    else:
        raise NotOffered(f"the selection {select['policy']!r} is not known")
    return " | ".join(parts)


def _frontier(frontier: dict[str, Any]) -> str:
    if frontier["unit"] == "dcd":
        return "frontier({w}, most={s_max})".format(**frontier)
    return "frontier({w}, unit={unit})".format(**frontier)


def _llada(c: dict[str, Any], folder: Path) -> CasePlan:
    eos: Eos = "keep"
    stops: tuple[int, ...] = (EOS,)
    if c.get("logits_eos_inf"):
        eos = "suppress"
    elif c.get("confidence_eos_eot_inf"):
        eos, stops = "last", (EOS, EOT)
    settings = _settings(c, f"confidence | static({c['steps']})", eos)
    return CasePlan(settings, guidance=c.get("cfg_scale", 0.0), stop_ids=stops)


def dream_rule(c: dict[str, Any]) -> str:
    """The rule of Dream's own sampler."""
    if c["alg"] == "origin":
        return f"confidence | origin({c['steps']}, eps={c['eps']})"
    return f"{SCORES[c['alg']]} | timesteps({c['steps']}, eps={c['eps']})"


def _dream(c: dict[str, Any], folder: Path) -> CasePlan:
    return CasePlan(_settings(c, dream_rule(c)), shift=True, seed=c.get("torch_manual_seed", 0))


def _fastdllm(c: dict[str, Any], folder: Path) -> CasePlan:
    if c.get("threshold") is None:
        return CasePlan(_settings(c, f"confidence | static({c['steps']})"))
    rule = f"confidence | threshold({c['threshold']}, test=ge)"
    return CasePlan(_settings(c, rule, _fastdllm_eos(c)))


def _fastdllm_eos(c: dict[str, Any]) -> Eos:
    return "fill" if c.get("early_stop") else "keep"


def _klass_alg(c: dict[str, Any], folder: Path) -> CasePlan:
    alg = c["decoder"].removeprefix("klass_alg_")
    if alg == "entropy":
        raise KnownDifference("upstream scores +entropy: the most uncertain token goes first")
    if alg == "random":
        raise KnownDifference("depends on the order in which upstream draws random numbers")
    # Upstream takes the largest probability for every other name, such as "default".
    score = "margin" if alg == "topk_margin" else "confidence"
    return CasePlan(_settings(c, f"{score} | static({c['steps']})"))


def _by_rule(
    rule: str, eos: Callable[[dict[str, Any]], Eos] = lambda c: "keep", shift: bool = False
) -> Make:
    """A plan that needs only a rule, with the values of the case's config filled in."""
    return lambda c, folder: CasePlan(_settings(c, rule.format(**c), eos(c)), shift=shift)


def _klass(test: str, shift: bool = False) -> Make:
    knobs = "{conf_threshold}, kl={kl_threshold}, n={kl_history_length}"
    make = _by_rule(f"confidence | klass({knobs}{test})", shift=shift)

    def plan(c: dict[str, Any], folder: Path) -> CasePlan:
        if c["steps"] < c["gen_length"]:
            raise KnownDifference("with fewer steps than tokens upstream leaves masks")
        if c.get("unmask_strategy", "all") != "all":
            raise NotOffered("KLASS's unmask_strategy other than 'all' is not offered")
        return make(c, folder)

    return plan


def _dinfer_eos(c: dict[str, Any]) -> Eos:
    return "block" if c.get("early_stop") and c.get("eos_id", EOS) >= 0 else "keep"


def _pc_sampler(c: dict[str, Any], folder: Path) -> CasePlan:
    weight = PositionCalibration(c["lambda"], c["alpha"], str(folder / "background_freq.json"))
    plain = Rule.parse(f"confidence | static({c['steps']})")
    return CasePlan(_settings(c, Rule(plain.score, plain.select, (weight,))))


def _pc_static(score: str) -> Make:
    def plan(c: dict[str, Any], folder: Path) -> CasePlan:
        if _block(c) is not None:
            raise KnownDifference("upstream does not exclude later blocks")
        return CasePlan(_settings(c, f"{score} | static({c['steps']})"))

    return plan


def _d2_vanilla(c: dict[str, Any], folder: Path) -> CasePlan:
    eos: Eos = "stop" if c.get("stop_until_eos") else "keep"
    rule = f"{SCORES[c['alg']]} | top({c['num_transfer_tokens']})"
    stops = (c.get("eos_token_id", EOS),)
    return CasePlan(_settings(c, rule, eos), shift=c.get("shift_logits", False), stop_ids=stops)


def _d2_threshold(c: dict[str, Any], folder: Path) -> CasePlan:
    rule = (
        f"{SCORES[c['alg']]} | threshold({c['threshold']}, test=ge) "
        f"| floor({c['num_transfer_tokens']})"
    )
    return CasePlan(_settings(c, rule), shift=c.get("shift_logits", False))


def _d2_ar(c: dict[str, Any], folder: Path) -> CasePlan:
    if c["threshold"] is None:
        raise KnownDifference("without a threshold upstream takes the whole block in one step")
    rule = f"confidence | ar({c['threshold']}, k={c['num_transfer_tokens']})"
    return CasePlan(_settings(c, rule))


def _d2_eb(c: dict[str, Any], folder: Path) -> CasePlan:
    if c["alg"] != "entropy":
        raise KnownDifference("upstream takes the maximum over the batch axis, which is not EB")
    return CasePlan(_settings(c, f"entropy | eb({c['gamma']})"))


def _dllm_plugin(c: dict[str, Any], folder: Path) -> CasePlan:
    tau = Threshold(c["commit_confidence_threshold"]).tau
    rule = f"confidence | threshold({tau}) | floor(1, steps={c['denoise_steps']})"
    return CasePlan(_settings(c, rule))


def _rpd_ce(c: dict[str, Any], folder: Path) -> CasePlan:
    gate = _GATE.format(
        tau=c["threshold"], beta=c["budget"], W=c["fallback_window"], unit=c["fallback_unit"]
    )
    return CasePlan(_settings(c, f"confidence | {gate}"), shift=c["shift_logits"])


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
        "confidence | threshold({threshold}, test=ge) | cap(1, steps={steps})", shift=True
    ),
    "fastdllm_factor": _by_rule("confidence | factor({factor}, last=take)", _fastdllm_eos),
    "klass": _klass(test=""),
    "klass_alg": _klass_alg,
    "klass_dream": _klass(test=", test=ge", shift=True),
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
