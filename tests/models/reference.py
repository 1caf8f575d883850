"""The five families as plain loops in float64, written from their description alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Plan:
    """The sizes and options of a model."""

    layers: int
    heads: int
    kv_heads: int
    size: int  # of a head
    rotated: int  # how many features of a head are rotated
    theta: float
    eps: float
    block: int | None  # block-causal attention of this width


def plan_of(family: str, c: dict[str, Any]) -> Plan:
    """The values of the config, with the defaults of the original code."""
    rope = c.get("rope_parameters") or {}
    theta = rope.get("rope_theta") or c["rope_theta"]
    if family == "llada":
        size = c["d_model"] // c["n_heads"]
        kv_heads = c.get("n_kv_heads") or c["n_heads"]
        return Plan(
            c["n_layers"],
            c["n_heads"],
            kv_heads,
            size,
            size,
            theta,
            c["rms_norm_eps"],
            None,
        )
    heads = c["num_attention_heads"]
    size = c.get("head_dim") or c["hidden_size"] // heads
    part = c.get("partial_rotary_factor") or rope.get("partial_rotary_factor") or 1.0
    block = {"sdar": c.get("block_size", 4), "llada2": c.get("block_length", 32)}.get(family)
    return Plan(
        c["num_hidden_layers"],
        heads,
        c.get("num_key_value_heads") or heads,
        size,
        int(part * size),
        theta,
        c["rms_norm_eps"],
        block,
    )


def norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x / sqrt(mean of squares + eps), times the weight."""
    return x / ((x * x).mean(-1, keepdim=True) + eps).sqrt() * weight


def turn(x: Tensor, position: int, rotated: int, theta: float) -> Tensor:
    """Rotate pairs (d, d + rotated / 2) of one head by their angle; the rest is unchanged."""
    out, half = x.clone(), rotated // 2
    for d in range(half):
        angle = torch.tensor(position * theta ** (-2 * d / rotated), dtype=torch.float64)
        a, b = x[d], x[d + half]
        out[d] = a * angle.cos() - b * angle.sin()
        out[d + half] = b * angle.cos() + a * angle.sin()
    return out


def gated(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    """down(silu(gate(x)) * up(x))."""
    g = x @ gate.T
    return (g / (1 + (-g).exp()) * (x @ up.T)) @ down.T


class Reference:
    """The logits of a checkpoint, given its config and its tensors by their stored names."""

    def __init__(self, family: str, config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        self.family, self.config = family, config
        self.w = {name: tensor.double() for name, tensor in tensors.items()}
        self.plan = plan_of(family, config)

    def logits(self, ids: list[int]) -> Tensor:
        """[L] -> [L, V], unshifted."""
        w, llada = self.w, self.family == "llada"
        embedding = {"llada": "transformer.wte", "llada2": "word_embeddings"}
        table = w[f"model.{embedding.get(self.family, 'embed_tokens')}.weight"]
        x = torch.stack([table[token] for token in ids])
        for i in range(self.plan.layers):
            x = x + self.attention(x, i)
            x = x + self.feed_forward(x, i)
        final = w["model.transformer.ln_f.weight" if llada else "model.norm.weight"]
        head = w.get("model.transformer.ff_out.weight" if llada else "lm_head.weight", table)
        return norm(x, final, self.plan.eps) @ head.T

    def sees(self, query: int, key: int) -> bool:
        """Whether a position may attend to another."""
        block = self.plan.block
        return block is None or query // block >= key // block

    def projections(self, h: Tensor, i: int) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values before they are split into heads."""
        w, p = self.w, self.plan
        if self.family == "llada2":
            fused = h @ w[f"model.layers.{i}.attention.query_key_value.weight"].T
            wide, narrow = p.heads * p.size, p.kv_heads * p.size
            return fused[:, :wide], fused[:, wide : wide + narrow], fused[:, wide + narrow :]
        stem = {"llada": f"model.transformer.blocks.{i}."}
        before = stem.get(self.family, f"model.layers.{i}.self_attn.")
        q, k, v = (
            h @ w[f"{before}{part}_proj.weight"].T + w.get(f"{before}{part}_proj.bias", 0)
            for part in "qkv"
        )
        return q, k, v

    def attention(self, x: Tensor, i: int) -> Tensor:
        """One layer's attention branch, query by query and head by head."""
        w, p = self.w, self.plan
        if self.family == "llada":
            first = f"model.transformer.blocks.{i}.attn_norm.weight"
            out = f"model.transformer.blocks.{i}.attn_out.weight"
            q_norm = k_norm = None
        else:
            layer = f"model.layers.{i}."
            first = f"{layer}input_layernorm.weight"
            out = f"{layer}self_attn.o_proj.weight"
            names = [f"{layer}self_attn.q_norm.weight", f"{layer}self_attn.k_norm.weight"]
            if self.family == "llada2":
                out = f"{layer}attention.dense.weight"
                names = [f"{layer}attention.{part}_layernorm.weight" for part in ("query", "key")]
            q_norm, k_norm = (w.get(name) for name in names)
        q, k, v = self.projections(norm(x, w[first], p.eps), i)
        length, mixed = len(x), torch.zeros(len(x), p.heads * p.size, dtype=torch.float64)

        def head(flat: Tensor, position: int, number: int, weight: Tensor | None) -> Tensor:
            one = flat[position, number * p.size : (number + 1) * p.size]
            one = one if weight is None else norm(one, weight, p.eps)
            return turn(one, position, p.rotated, p.theta)

        keys = [[head(k, j, n, k_norm) for n in range(p.kv_heads)] for j in range(length)]
        for n in range(p.heads):
            group = n // (p.heads // p.kv_heads)  # heads that share their keys are neighbours
            span = slice(group * p.size, (group + 1) * p.size)
            for a in range(length):
                query, seen = head(q, a, n, q_norm), [j for j in range(length) if self.sees(a, j)]
                scores = torch.stack([query @ keys[j][group] for j in seen]) / p.size**0.5
                weights = scores.softmax(0)
                total = sum(weight * v[j, span] for weight, j in zip(weights, seen, strict=True))
                mixed[a, n * p.size : (n + 1) * p.size] = total
        return mixed @ w[out].T

    def feed_forward(self, x: Tensor, i: int) -> Tensor:
        """One layer's MLP, or its experts token by token."""
        w, p = self.w, self.plan
        if self.family == "llada":
            block = f"model.transformer.blocks.{i}."
            h = norm(x, w[f"{block}ff_norm.weight"], p.eps)
            parts = (w[f"{block}{name}.weight"] for name in ("ff_proj", "up_proj", "ff_out"))
            return gated(h, *parts)
        layer = f"model.layers.{i}."
        h = norm(x, w[f"{layer}post_attention_layernorm.weight"], p.eps)
        if f"{layer}mlp.gate.weight" not in w:
            return self.mlp(h, f"{layer}mlp.")
        rows = []
        for token in h:
            logits = w[f"{layer}mlp.gate.weight"] @ token
            bias = w.get(f"{layer}mlp.gate.expert_bias", w.get(f"{layer}mlp.expert_bias"))
            route = route_sigmoid if self.family == "llada2" else route_softmax
            y = torch.zeros_like(token)
            for expert, weight in route(logits, bias, self.config).items():
                y = y + weight * self.mlp(token, f"{layer}mlp.experts.{expert}.")
            for shared in (f"{layer}shared_expert.", f"{layer}mlp.shared_experts."):
                if f"{shared}gate_proj.weight" in w:
                    y = y + self.mlp(token, shared)
            rows.append(y)
        return torch.stack(rows)

    def mlp(self, x: Tensor, prefix: str) -> Tensor:
        parts = (self.w[f"{prefix}{name}_proj.weight"] for name in ("gate", "up", "down"))
        return gated(x, *parts)


def route_softmax(logits: Tensor, bias: Tensor | None, c: dict[str, Any]) -> dict[int, float]:
    """LLaDA-MoE: the likeliest experts with their probabilities, neither scaled nor normalised."""
    score = (logits - logits.max()).exp()
    score = score / score.sum()
    if bias is not None:
        score = score + bias
    best = sorted(range(len(score)), key=lambda e: -score[e])[: c["num_experts_per_tok"]]
    return {e: float(score[e]) for e in best}


def route_sigmoid(logits: Tensor, bias: Tensor | None, c: dict[str, Any]) -> dict[int, float]:
    """LLaDA2: the best experts of the best groups; the bias changes the choice, not the weights."""
    score = 1 / (1 + (-logits).exp())
    wish = score if bias is None else score + bias
    size = len(score) // c["n_group"]

    def promise(group: int) -> float:
        return float(sum(sorted(wish[group * size : (group + 1) * size].tolist())[-2:]))

    groups = sorted(range(c["n_group"]), key=promise)[-c["topk_group"] :]
    open_to = [e for e in range(len(score)) if e // size in groups]
    best = sorted(open_to, key=lambda e: -wish[e])[: c["num_experts_per_tok"]]
    total = sum(float(score[e]) for e in best) + 1e-20
    return {e: c["routed_scaling_factor"] * float(score[e]) / total for e in best}
