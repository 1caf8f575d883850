"""The training loop: Muon for the matrices, AdamW for the rest; a run can be resumed."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

import torch
from tokenizers import Tokenizer
from torch import Tensor, distributed, nn
from torch.nn import functional as F  # noqa: N812

from train import model as networks
from train.batches import Batch, Batches
from train.plan import Plan
from train.tokens import build
from unmask.models.transformer import Transformer

LOG_EVERY, SAVE_EVERY = 50, 250


class Training:
    """A network, its optimizers, and the steps and seconds so far."""

    def __init__(self, folder: Path, plan: Plan, tokenizer: Tokenizer, worker: int) -> None:
        self.folder = folder
        self.plan = plan
        self.tokenizer = tokenizer
        self.worker = worker
        self.settings = networks.config(tokenizer)
        self.module = networks.create(self.settings, plan.seed)
        self.batches = Batches(tokenizer, plan, worker)
        self.optimizers = _optimizers(self.module, plan)
        self.step = 0
        self.seconds = 0.0

    @property
    def _state_file(self) -> Path:
        return self.folder / "training.pt"

    def resume(self) -> bool:
        """Load the state of an interrupted run of the same plan; False if there is none."""
        if not self._state_file.is_file():
            return False
        state = torch.load(self._state_file, weights_only=True)
        if state["plan"] != asdict(self.plan):
            raise SystemExit(
                f"{self._state_file} belongs to another plan, {state['plan']}; "
                "give another --output, or remove it"
            )
        self.module.load_state_dict(state["module"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.step, self.seconds = state["step"], state["seconds"]
        return True

    def run(self, log: TextIO) -> None:
        """Train to the end of the plan, and log the mean loss since the last line.

        Every worker takes the same steps; the first worker logs and saves.
        """
        if torch.ops.mkldnn._is_mkldnn_bf16_supported():
            networks.multiply_in_bfloat16(self.module)
        total, begin = 0.0, time.perf_counter()
        while self.step < self.plan.steps:
            total += self._take_step(self.batches.at(self.step))
            self.step += 1
            if self.step % LOG_EVERY == 0 or self.step == self.plan.steps:
                now = time.perf_counter()
                self.seconds, begin = self.seconds + now - begin, now
                count = (self.step - 1) % LOG_EVERY + 1
                line = {
                    "step": self.step,
                    "loss": round(total / count, 4),
                    "seconds": round(self.seconds),
                }
                if self.worker == 0:
                    print(json.dumps(line), file=log, flush=True)
                total = 0.0
            if self.step % SAVE_EVERY == 0 and self.worker == 0:
                self._save_state()
        if self.worker == 0:
            self.save()
            self._state_file.unlink(missing_ok=True)

    def _take_step(self, batch: Batch) -> float:
        for optimizer, base in zip(
            self.optimizers, (self.plan.matrix_rate, self.plan.other_rate), strict=True
        ):
            for group in optimizer.param_groups:
                group["lr"] = base * self.plan.rate(self.step)
            optimizer.zero_grad(set_to_none=True)
        loss = objective(self.module, batch)
        loss.backward()
        self._share_gradients()
        nn.utils.clip_grad_norm_(self.module.parameters(), 1.0)
        for optimizer in self.optimizers:
            optimizer.step()
        return loss.item()

    def _share_gradients(self) -> None:
        """Average the gradients of all workers, in one message."""
        gradients = [p.grad for p in self.module.parameters() if p.grad is not None]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        distributed.all_reduce(flat)
        flat /= self.plan.workers
        for gradient, part in zip(
            gradients, flat.split([g.numel() for g in gradients]), strict=True
        ):
            gradient.copy_(part.view_as(gradient))

    def _save_state(self) -> None:
        """Replace the state file atomically, so that a kill leaves the old or the new state."""
        state: dict[str, Any] = {
            "plan": asdict(self.plan),
            "module": self.module.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "step": self.step,
            "seconds": self.seconds,
        }
        fresh = self._state_file.with_suffix(".new")
        torch.save(state, fresh)
        fresh.replace(self._state_file)

    def save(self) -> None:
        """Write the checkpoint folder, as it is shipped."""
        tensors: dict[str, Tensor] = dict(self.module.named_parameters())
        networks.save(self.folder, tensors, self.settings, self.tokenizer)


def objective(module: Transformer, batch: Batch) -> Tensor:
    """LLaDA's objective: cross-entropy of the masked tokens, weighted by 1 / t.

    The logits of all positions are computed, because oneDNN compiles a kernel for each new shape.
    """
    logits = module.logits(module(batch.noisy))
    losses = F.cross_entropy(logits.flatten(0, 1), batch.clean.flatten(), reduction="none")
    return (losses * batch.weight.flatten()).sum() / len(batch.clean)


def _optimizers(module: Transformer, plan: Plan) -> list[torch.optim.Optimizer]:
    matrices, others = [], []
    for name, parameter in module.named_parameters():
        inner = name.startswith("layers.") and parameter.ndim == 2
        (matrices if inner else others).append(parameter)
    return [
        torch.optim.Muon(matrices, lr=plan.matrix_rate, weight_decay=0.01),
        torch.optim.AdamW(others, lr=plan.other_rate, betas=(0.9, 0.98), weight_decay=0.0),
    ]


def work(worker: int, plan: Plan, folder: Path, meeting: str) -> None:
    """Run one worker: a process with one thread, a copy of the network, and its own batches."""
    torch.set_num_threads(1)
    place = f"file://{meeting}/store"
    distributed.init_process_group("gloo", place, rank=worker, world_size=plan.workers)
    training = Training(folder, plan, build(), worker)
    training.resume()
    with _log_until(folder / "log.jsonl", training.step, worker) as log:
        training.run(log)
    distributed.destroy_process_group()


def _log_until(file: Path, step: int, worker: int) -> TextIO:
    """Open the log to append, without the lines of steps that will be repeated."""
    if worker == 0:
        lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
        kept = [line for line in lines if json.loads(line)["step"] <= step]
        file.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
    return file.open("a", encoding="utf-8")
