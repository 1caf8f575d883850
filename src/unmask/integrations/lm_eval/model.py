"""The model class that lm_eval knows as `unmask`."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from lm_eval._cli.utils import key_val_to_dict
from lm_eval.api.model import TemplateLM
from lm_eval.api.registry import register_model
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window, warning_once
from tqdm import tqdm

from unmask import __version__
from unmask.decoding.loop import longest_first
from unmask.decoding.request import prompt_request
from unmask.errors import RequestError
from unmask.integrations.lm_eval.generation import Ask, Generation, generations
from unmask.integrations.lm_eval.options import Options, Wanted
from unmask.integrations.lm_eval.ranks import Ranks
from unmask.studies.likelihood import Pair, log_likelihoods, would_write
from unmask.models.fingerprint import sha_of

log = logging.getLogger(__name__)
IGNORED = ("max_batch_size", "trust_remote_code")  # lm_eval says them to every model
LONGEST = 2048  # of a window of a long text, where the model has no longest


@register_model("unmask")
class UnmaskLM(TemplateLM):  # type: ignore[misc]
    """A masked diffusion model with a decoding rule; the arguments are those of `Options`."""

    def __init__(self, **given: Any) -> None:
        super().__init__()
        self.ranks = Ranks.here()
        given = {name: value for name, value in given.items() if name not in IGNORED}
        options = Options.of(given)
        self.options = replace(options, device=self.ranks.device(options.device))
        self.job = self.options.job()
        self.tokenizer = self.job.shape.tokenizer
        self.max_length = self.options.max_length or self.job.shape.context
        self._rank, self._world_size = self.ranks.rank, self.ranks.size
        self._device = self.job.device
        self.model = self.job.load()

    @classmethod
    def create_from_arg_string(
        cls, arg_string: str, additional_config: dict[str, Any] | None = None
    ) -> UnmaskLM:
        """As the command line reads it: the commas inside a rule's brackets are the rule's."""
        return cls.create_from_arg_obj(key_val_to_dict(arg_string), additional_config)  # type: ignore[no-any-return]

    # What identifies it.

    def get_model_info(self) -> dict[str, Any]:
        """For the results: everything that texts and likelihoods depend on."""
        return {"unmask": self.settings}

    @property
    def settings(self) -> dict[str, Any]:
        """All that a response depends on but the request, and its fingerprint `sha`."""
        record = {
            **self.job.settings_record,
            "weights": self.job.weights,
            "mc_num": self.options.mc_num,
            "check_greedy": self.options.check_greedy,
            "max_length": self.max_length,
            "version": __version__,
        }
        return {**record, "sha": sha_of(record)}

    def set_cache_hook(self, cache_hook: Any) -> None:
        """Keep the responses of each setting in a table of its own.

        The harness looks responses up by the request alone, so that one file would serve a sweep's
        every setting with the texts of its first.
        """
        if cache_hook.dbdict is not None:
            from sqlitedict import SqliteDict

            table = f"unmask-{self.settings['sha']}"
            SqliteDict(cache_hook.dbdict.filename, tablename=table).close()  # makes it
            cache_hook.dbdict.tablename = table
        super().set_cache_hook(cache_hook)

    # Texts and chats.

    @property
    def eot_token_id(self) -> int:
        end = self.job.shape.spec.eos_id
        assert end is not None  # every checkpoint names one
        return end

    @property
    def prefix_token_id(self) -> int:
        """What stands before a text that has nothing before it."""
        found: int | None = self.tokenizer.token_id("bos_token")
        return self.eot_token_id if found is None else found

    def tok_encode(
        self, string: str, add_special_tokens: bool | None = None, **kwargs: Any
    ) -> list[int]:
        """Token ids; special tokens are those that the text spells out."""
        ids: list[int] = self.tokenizer.encode(string)
        return ids

    @property
    def tokenizer_name(self) -> str:
        """For the harness's cache of prompts."""
        return f"{self.job.shape.folder.resolve().name}-{self.job.weights}"

    def chat_template(self, chat_template: bool | str = False) -> str | None:
        """The model's template; it has one or none."""
        if isinstance(chat_template, str):
            raise RequestError(
                f"--apply_chat_template {chat_template}: templates have no names here; give the "
                "option without one"
            )
        if chat_template and self.tokenizer.template is None:
            raise RequestError(
                f"{self.options.pretrained} has no chat template; leave --apply_chat_template out"
            )
        template: str | None = self.tokenizer.template
        return template if chat_template else None

    def apply_chat_template(
        self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
    ) -> str:
        """A chat as text; without the generation prompt, its last message is to be continued."""
        if add_generation_prompt:
            return str(self.tokenizer.render(chat_history))
        *before, last = chat_history
        return str(self.tokenizer.render(before)) + last["content"]

    # The three kinds of requests.

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:
        """Texts up to their stop strings, in order; the longest canvases are decoded first."""
        seen: Counter[str] = Counter()
        asks = []
        for request in requests:
            context, given = request.args
            self._check_repeats(request, given)
            same = sha_of([context, str(given)])
            asks.append(self._ask(context, given, seen[same]))
            seen[same] += 1
        order = longest_first([len(ask.request.canvas) for ask in asks])
        texts: dict[int, Generation] = {}
        with self._bar(len(asks), "generate_until", disable_tqdm) as bar:
            chosen = [asks[number] for number in order]
            size = self.options.batch_size
            for key, text in generations(self.model, self.tokenizer, chosen, size):
                texts[order[key]] = text
                self.cache_hook.add_partial("generate_until", requests[order[key]].args, text)
                bar.update()
        return [texts[number] for number in range(len(asks))]

    def _ask(self, context: str, given: dict[str, Any], repeat: int) -> Ask:
        """A request as a canvas; its seed depends on its text and on which repeat it is alone."""
        wanted = Wanted.of(self.job, given)
        length, settings, spec = wanted.decoding.length, wanted.decoding.settings, self.model.spec
        if self.options.length not in (None, length):
            said = (
                f"the task asks for {length} tokens, not for the {self.options.length} of "
                "model_args; --gen_kwargs max_gen_toks=N overrules both"
            )
            warning_once(log, said)
        ids = self._fitting(self.tok_encode(context) or [self.prefix_token_id], length)
        seed = int(sha_of([self.options.seed, context, repeat])[:12], 16)
        return Ask(prompt_request(spec, ids, length, settings, seed), wanted.until)

    def _check_repeats(self, request: Any, given: dict[str, Any]) -> None:
        cached = self.cache_hook.dbdict is not None and not given.get("do_sample")
        if cached and (request.repeats or 1) > 1 and given.get("temperature"):
            raise RequestError(
                f"--use_cache would serve one text for all {request.repeats} repeats; say "
                "do_sample=True in --gen_kwargs, or leave the cache out"
            )

    def _fitting(self, ids: list[int], length: int) -> list[int]:
        """A context that leaves room for `length` more: its end, as the harness does it."""
        if self.max_length is None:
            return ids
        room = self.max_length - length
        if room < 1:
            raise RequestError(
                f"{length} tokens leave no room for a prompt within the {self.max_length} that "
                f"{self.options.pretrained} was made for; ask for fewer, or give max_length"
            )
        if len(ids) > room:
            warning_once(log, f"prompts longer than {room} tokens lose their beginning")
        return ids[-room:]

    def _loglikelihood_tokens(
        self, requests: Sequence[tuple[tuple[str, str], list[int], list[int]]], **kwargs: Any
    ) -> list[tuple[float, bool]]:
        """Log-likelihoods by LLaDA's estimator, and whether the rule would write just that."""
        pairs = [
            Pair(self._fitting(context, len(target)), target) for _, context, target in requests
        ]
        found: dict[int, tuple[float, bool]] = {}
        order = longest_first([len(pair.prefix) + len(pair.target) for pair in pairs])
        chosen = [pairs[number] for number in order]
        greedy = self._written(chosen)
        with self._bar(len(pairs), "loglikelihood", bool(kwargs.get("disable_tqdm"))) as bar:
            for number, value, same in zip(order, self._estimates(chosen), greedy, strict=True):
                found[number] = value, same
                self.cache_hook.add_partial("loglikelihood", requests[number][0], found[number])
                bar.update()
        return [found[number] for number in range(len(pairs))]

    def loglikelihood_rolling(
        self, requests: Sequence[Any], disable_tqdm: bool = False
    ) -> list[float]:
        """Log-likelihoods of whole texts, in windows of the model's longest where they are long."""
        windows = [self._windows(request.args[0]) for request in requests]
        values = self._estimates([pair for pairs in windows for pair in pairs])
        found = []
        with self._bar(len(requests), "loglikelihood_rolling", disable_tqdm) as bar:
            for request, pairs in zip(requests, windows, strict=True):
                found.append(float(sum(next(values) for _ in pairs)))
                self.cache_hook.add_partial("loglikelihood_rolling", request.args, found[-1])
                bar.update()
        return found

    def _windows(self, text: str) -> list[Pair]:
        ids, longest = self.tok_encode(text), (self.max_length or LONGEST) - 1
        windows = get_rolling_token_windows(ids, self.prefix_token_id, longest, 1)
        return [Pair(*make_disjoint_window(window)) for window in windows]

    def _estimates(self, pairs: Sequence[Pair]) -> Iterator[float]:
        if self.options.cache != "none":
            raise RequestError(
                f"cache={self.options.cache} is for texts; a likelihood looks at every canvas "
                "anew: leave the cache out"
            )
        options = self.options
        return log_likelihoods(self.model, pairs, options.mc_num, options.seed, options.batch_size)

    def _written(self, pairs: Sequence[Pair]) -> list[bool]:
        if not self.options.check_greedy:
            return [False] * len(pairs)
        options = self.options
        return would_write(self.model, pairs, self.job.settings, options.seed, options.batch_size)

    def _bar(self, total: int, kind: str, quiet: bool) -> Any:
        return tqdm(total=total, desc=f"unmask {kind}", disable=quiet or self.rank != 0)

    # Several processes.

    def all_gather(self, tensor: torch.Tensor) -> torch.Tensor:
        return self.ranks.all_gather(tensor)

    def gather_object(self, obj: Any, dst: int = 0) -> list[Any] | None:
        return self.ranks.gather(obj, dst)

    def barrier(self) -> None:
        self.ranks.wait()
