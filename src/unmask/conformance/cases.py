"""Golden decoder cases as requests: which rule of this build answers which upstream function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unmask.decoding.options import Eos
from unmask.decoding.request import Settings
from unmask.rules.modulators import PositionCalibration
from unmask.rules.rule import Rule
from unmask.rules.select import Threshold

EOS, EOT = 59, 58  # of the toy denoisers
SCORES = {"maskgit_plus": "confidence", "topk_margin": "margin", "entropy": "entropy"}


class NotOffered(Exception):  # noqa: N818
    """A decoder that this build does not have."""


class KnownDifference(Exception):  # noqa: N818
    """A case that records an upstream defect, or the order of upstream's random numbers."""


@dataclass(frozen=True)
class Plan:
    """How to decode a case."""

    settings: Settings
    shift: bool = False
    guidance: float = 0.0
    stop_ids: tuple[int, ...] = (EOS,)
    seed: int = 0


def plan_of(case: dict[str, Any], folder: Path) -> Plan:
    """The plan that should reproduce a golden case."""
    config, family = case["config"], case["id"].split("/")[0]
    if "decoder" not in config:
        return Plan(_settings(config, _swd_rule(config)), shift=config.get("shift", False))
    make = _UPSTREAM.get(family)
    if make is None:
        raise NotOffered(_NOT_OFFERED.get(family, f"the family {family!r} is not known here"))
    if "BUG" in case["id"] or "QUIRK" in case["id"]:
        raise KnownDifference(case.get("notes") or "records an upstream defect")
    if config.get("temperature") or config.get("alg_temp") or config.get("remasking") == "random":
        raise KnownDifference("depends on the order in which upstream draws random numbers")
    return make(config, folder)


def _settings(config: dict[str, Any], rule: str | Rule, eos: Eos = "keep") -> Settings:
    parsed = Rule.parse(rule) if isinstance(rule, str) else rule
    # Upstream leaves the mask token in the softmax, so the comparison does too.
    return Settings(parsed, _block(config), eos, allow_mask=True)


def _block(config: dict[str, Any]) -> int | None:
    block = config.get("block_length", config["gen_length"])
    return None if block >= config["gen_length"] else int(block)


def _swd_rule(config: dict[str, Any]) -> str:
    parts = [config["metric"]]
    parts.append(
        f"swd({config['lam']}, kl={config['kl_dir']}, start={config['first_step']}, "
        f"form={config['entropy_form']}, scope={config.get('history_scope', 'sequence')})"
    )
    if "credit" in config:
        credit = config["credit"]
        parts.insert(0, f"credit({credit['alpha']}, {credit['beta']}, {credit['gamma']})")
    select = config["sel"]
    if "klass" in config:
        klass = config["klass"]
        parts.append(f"klass({klass['conf']}, kl={klass['kl']}, n={klass['n']})")
    elif select["policy"] == "topk":
        parts.append(f"top({select['k']})")
    elif select["policy"] == "threshold":
        parts.append(f"threshold({select['tau']})")
    elif select["policy"] == "eb":
        parts.append(f"eb({select['gamma']})")
    else:
        raise NotOffered(f"the selection {select['policy']!r} is not known here")
    return " | ".join(parts)


def _llada(c: dict[str, Any], folder: Path) -> Plan:
    eos: Eos = "keep"
    stops: tuple[int, ...] = (EOS,)
    if c.get("logits_eos_inf"):
        eos = "suppress"
    elif c.get("confidence_eos_eot_inf"):
        eos, stops = "last", (EOS, EOT)
    settings = _settings(c, f"confidence | static({c['steps']})", eos)
    return Plan(settings, guidance=c.get("cfg_scale", 0.0), stop_ids=stops)


def _dream(c: dict[str, Any], folder: Path) -> Plan:
    if c["alg"] == "origin":
        rule = f"confidence | origin({c['steps']}, eps={c['eps']})"
    else:
        rule = f"{SCORES[c['alg']]} | timesteps({c['steps']}, eps={c['eps']})"
    return Plan(_settings(c, rule), shift=True, seed=c.get("torch_manual_seed", 0))


def _fastdllm(c: dict[str, Any], folder: Path) -> Plan:
    if c.get("threshold") is None:
        return Plan(_settings(c, f"confidence | static({c['steps']})"))
    eos: Eos = "fill" if c.get("early_stop") else "keep"
    return Plan(_settings(c, f"confidence | threshold({c['threshold']}, test=ge)", eos))


def _fastdllm_dream(c: dict[str, Any], folder: Path) -> Plan:
    rule = f"confidence | threshold({c['threshold']}, test=ge) | cap(1, steps={c['steps']})"
    return Plan(_settings(c, rule), shift=True)


def _fastdllm_factor(c: dict[str, Any], folder: Path) -> Plan:
    eos: Eos = "fill" if c.get("early_stop") else "keep"
    return Plan(_settings(c, f"confidence | factor({c['factor']}, last=take)", eos))


def _eb(c: dict[str, Any], folder: Path) -> Plan:
    return Plan(_settings(c, f"{c['rank']} | eb({c['gamma']})"))


def _klass(c: dict[str, Any], folder: Path) -> Plan:
    if c.get("unmask_strategy", "all") != "all":
        raise NotOffered("KLASS's unmask_strategy other than 'all' is not offered")
    knobs = f"{c['conf_threshold']}, kl={c['kl_threshold']}, n={c['kl_history_length']}"
    return Plan(_settings(c, f"confidence | klass({knobs})"))


def _klass_dream(c: dict[str, Any], folder: Path) -> Plan:
    if c.get("unmask_strategy", "all") != "all":
        raise NotOffered("KLASS's unmask_strategy other than 'all' is not offered")
    knobs = f"{c['conf_threshold']}, kl={c['kl_threshold']}, n={c['kl_history_length']}, test=ge"
    return Plan(_settings(c, f"confidence | klass({knobs})"), shift=True)


def _klass_alg(c: dict[str, Any], folder: Path) -> Plan:
    if c["decoder"].endswith("entropy"):
        raise KnownDifference("upstream scores +entropy: the most uncertain token goes first")
    return Plan(_settings(c, f"margin | static({c['steps']})"))


def _dinfer_eos(c: dict[str, Any]) -> Eos:
    return "block" if c.get("early_stop") and c.get("eos_id", EOS) >= 0 else "keep"


def _dinfer_threshold(c: dict[str, Any], folder: Path) -> Plan:
    rule = f"confidence | {_dinfer_select(c)}"
    return Plan(_settings(c, rule, _dinfer_eos(c)))


def _credit(c: dict[str, Any], folder: Path) -> Plan:
    knobs = f"{c['credit_alpha']}, {c['decay_beta']}, {c['boost_gamma']}"
    rule = f"credit({knobs}) | confidence | {_dinfer_select(c)}"
    return Plan(_settings(c, rule, _dinfer_eos(c)))


def _dinfer_select(c: dict[str, Any]) -> str:
    return f"threshold({c['threshold']}, test=ge, slack=1e-05)"


def _hierarchy(c: dict[str, Any], folder: Path) -> Plan:
    rule = f"confidence | hierarchy({c['threshold']}, low={c['low_threshold']})"
    return Plan(_settings(c, rule, _dinfer_eos(c)))


def _pc_sampler(c: dict[str, Any], folder: Path) -> Plan:
    weight = PositionCalibration(c["lambda"], c["alpha"], str(folder / "background_freq.json"))
    plain = Rule.parse(f"confidence | static({c['steps']})")
    return Plan(_settings(c, Rule(plain.score, plain.select, (weight,))))


def _pc_static(score: str) -> Callable[[dict[str, Any], Path], Plan]:
    def plan(c: dict[str, Any], folder: Path) -> Plan:
        if _block(c) is not None:
            raise KnownDifference("upstream does not exclude later blocks")
        return Plan(_settings(c, f"{score} | static({c['steps']})"))

    return plan


def _sglang(c: dict[str, Any], folder: Path) -> Plan:
    return Plan(_settings(c, f"confidence | threshold({c['threshold']})"))


def _d2_vanilla(c: dict[str, Any], folder: Path) -> Plan:
    eos: Eos = "stop" if c.get("stop_until_eos") else "keep"
    rule = f"{SCORES[c['alg']]} | top({c['num_transfer_tokens']})"
    stops = (c.get("eos_token_id", EOS),)
    return Plan(_settings(c, rule, eos), shift=c.get("shift_logits", False), stop_ids=stops)


def _d2_threshold(c: dict[str, Any], folder: Path) -> Plan:
    rule = (
        f"{SCORES[c['alg']]} | threshold({c['threshold']}, test=ge) "
        f"| floor({c['num_transfer_tokens']})"
    )
    return Plan(_settings(c, rule), shift=c.get("shift_logits", False))


def _d2_factor(c: dict[str, Any], folder: Path) -> Plan:
    return Plan(_settings(c, f"confidence | factor({c['factor']}, last=drop)"))


def _d2_certainty(c: dict[str, Any], folder: Path) -> Plan:
    rule = f"confidence | certainty({c['sigma']}) | top({c['num_transfer_tokens']})"
    return Plan(_settings(c, rule))


def _d2_klass(c: dict[str, Any], folder: Path) -> Plan:
    knobs = f"{c['threshold']}, kl={c['kl_threshold']}, n={c['kl_history_length']}"
    return Plan(_settings(c, f"confidence | klass({knobs}, test=ge, gate=no)"))


def _d2_ar(c: dict[str, Any], folder: Path) -> Plan:
    if c["threshold"] is None:
        raise KnownDifference("without a threshold upstream takes the whole block in one step")
    return Plan(_settings(c, f"confidence | ar({c['threshold']}, k={c['num_transfer_tokens']})"))


def _d2_eb(c: dict[str, Any], folder: Path) -> Plan:
    if c["alg"] != "entropy":
        raise KnownDifference("upstream takes the maximum over the batch axis, which is not EB")
    return Plan(_settings(c, f"entropy | eb({c['gamma']})"))


def _dllm_plugin(c: dict[str, Any], folder: Path) -> Plan:
    tau = Threshold(c["commit_confidence_threshold"]).tau
    return Plan(
        _settings(c, f"confidence | threshold({tau}) | floor(1, steps={c['denoise_steps']})")
    )


_UPSTREAM: dict[str, Callable[[dict[str, Any], Path], Plan]] = {
    "credit": _credit,
    "d2_ar": _d2_ar,
    "d2_certainty": _d2_certainty,
    "d2_eb": _d2_eb,
    "d2_factor": _d2_factor,
    "d2_klass": _d2_klass,
    "d2_threshold": _d2_threshold,
    "d2_vanilla": _d2_vanilla,
    "dinfer_hierarchy": _hierarchy,
    "dinfer_threshold": _dinfer_threshold,
    "dllm_plugin": _dllm_plugin,
    "dream": _dream,
    "eb_pc": _eb,
    "eb_unid2": _eb,
    "fastdllm": _fastdllm,
    "fastdllm_dream": _fastdllm_dream,
    "fastdllm_factor": _fastdllm_factor,
    "klass": _klass,
    "klass_alg": _klass_alg,
    "klass_dream": _klass_dream,
    "llada": _llada,
    "pc_entropy": _pc_static("entropy"),
    "pc_margin": _pc_static("margin"),
    "pc_sampler": _pc_sampler,
    "sglang_low_confidence": _sglang,
}
_NOT_OFFERED = {
    "wino": "WINO's shadow block is not offered yet",
    "d2_wino": "WINO's shadow block is not offered yet",
    "sglang_joint_threshold": "editing of committed tokens is not offered yet",
}
