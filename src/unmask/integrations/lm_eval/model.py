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
from unmask.decoding.request import longest_first, prompt_request
from unmask.errors import RequestError
from unmask.integrations.lm_eval.generation import CountedText, TextRequest, generations
from unmask.integrations.lm_eval.options import ModelArguments, read_generation
from unmask.integrations.lm_eval.ranks import Ranks
from unmask.models.fingerprint import sha_of
from unmask.studies.likelihood import Continuation, log_likelihoods, would_write
from unmask.text.session import Session

log = logging.getLogger(__name__)
IGNORED = ("max_batch_size", "trust_remote_code")  # lm_eval passes them to every model
LONGEST = 2048  # tokens of a window of a long text, if the model names no context length


@register_model("unmask")
class UnmaskLM(TemplateLM):  # type: ignore[misc]
    """A masked diffusion model with a decoding rule; `ModelArguments` has the arguments."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__()
        self.ranks = Ranks.here()
        known = {name: value for name, value in arguments.items() if name not in IGNORED}
        options = ModelArguments.of(known)
        self.options = replace(options, device=self.ranks.device(options.device))
        pretrained, device = self.options.pretrained, self.options.device
        self.session = Session(pretrained, options=self.options.decoding, device=device)
        if (taken := self.session.recommended) is not None and self.ranks.rank == 0:
            log.info("unmask: rule %s", taken.words)
        self.tokenizer = self.session.tokenizer
        self.max_length = self.options.max_length or self.session.context
        self._rank, self._world_size = self.ranks.rank, self.ranks.size
        self._device = self.session.device
        self.model = self.session.model()

    @classmethod
    def create_from_arg_string(
        cls, arg_string: str, additional_config: dict[str, Any] | None = None
    ) -> UnmaskLM:
        """Parse `a=1,b=2` like the command line, where a rule may hold commas in its brackets."""
        return cls.create_from_arg_obj(key_val_to_dict(arg_string), additional_config)  # type: ignore[no-any-return]

    # Identity.

    def get_model_info(self) -> dict[str, Any]:
        """What lm_eval writes into the results: everything that texts and likelihoods depend on."""
        return {"unmask": self.settings}

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that a response depends on besides the request, and its fingerprint `sha`."""
        record = {
            **self.session.settings_record(self.session.format()),
            "weights": self.session.weights,
            "mc_num": self.options.mc_num,
            "check_greedy": self.options.check_greedy,
            "max_length": self.max_length,
            "version": __version__,
        }
        return {**record, "sha": sha_of(record)}

    def set_cache_hook(self, cache_hook: Any) -> None:
        """Keep the cached responses of each setting in a separate table.

        lm_eval looks responses up by the request alone. Without this, a sweep that uses one cache
        file would get the texts of its first setting for all others.
        """
        if cache_hook.dbdict is not None:
            from sqlitedict import SqliteDict

            table = f"unmask-{self.settings['sha']}"
            SqliteDict(cache_hook.dbdict.filename, tablename=table).close()  # creates the table
            cache_hook.dbdict.tablename = table
        super().set_cache_hook(cache_hook)

    # Texts and chats.

    @property
    def eot_token_id(self) -> int:
        end = self.session.spec.eos_id
        assert end is not None  # every checkpoint names one
        return end

    @property
    def prefix_token_id(self) -> int:
        """The token before a text without context: BOS, or EOS if the model has no BOS."""
        bos: int | None = self.tokenizer.token_id("bos_token")
        return self.eot_token_id if bos is None else bos

    def tok_encode(
        self, string: str, add_special_tokens: bool | None = None, **kwargs: Any
    ) -> list[int]:
        """Token ids; no special tokens are added to those in the text."""
        ids: list[int] = self.tokenizer.encode(string)
        return ids

    @property
    def tokenizer_name(self) -> str:
        """The key of this tokenizer in lm_eval's cache of prompts."""
        return f"{self.session.spec.name}-{self.session.weights}"

    def chat_template(self, chat_template: bool | str = False) -> str | None:
        """The model's chat template, or None if it is not asked for."""
        if isinstance(chat_template, str):
            raise RequestError(
                f"--apply_chat_template {chat_template}: a model has one template without a name; "
                "give the option without a value"
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
        """A chat as text; without the generation prompt it ends in the last message."""
        words = self.options.decoding.template_words
        if add_generation_prompt:
            return str(self.tokenizer.render(chat_history, words))
        *before, last = chat_history
        return str(self.tokenizer.render(before, words)) + last["content"]

    # Requests of three kinds.

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:
        """Texts up to their stop strings, in order; the longest canvases are decoded first."""
        repeats: Counter[str] = Counter()
        wanted = []
        for request in requests:
            context, arguments = request.args
            self._check_repeats(request, arguments)
            same = sha_of([context, str(arguments)])
            wanted.append(self._text_request(context, arguments, repeats[same]))
            repeats[same] += 1
        order = longest_first([len(text.request.canvas) for text in wanted])
        texts: dict[int, CountedText] = {}
        with self._bar(len(wanted), "generate_until", disable_tqdm) as bar:
            ordered = [wanted[number] for number in order]
            size = self.options.batch_size
            for key, text in generations(self.model, self.tokenizer, ordered, size):
                texts[order[key]] = text
                self.cache_hook.add_partial("generate_until", requests[order[key]].args, text)
                bar.update()
        return [texts[number] for number in range(len(wanted))]

    def _text_request(self, context: str, arguments: dict[str, Any], repeat: int) -> TextRequest:
        """The canvas of a request; its seed depends only on its text and the repeat's number."""
        resolved, until = read_generation(self.session, arguments)
        length, settings, spec = resolved.length, resolved.settings, self.model.spec
        usual = self.options.decoding.length
        if usual not in (None, "auto", length):
            warning_once(
                log,
                f"the task asks for {length} tokens, which replaces length={usual} "
                "of model_args; --gen_kwargs max_gen_toks=N replaces both",
            )
        ids = self._fitting(self.tok_encode(context) or [self.prefix_token_id], length)
        seed = int(sha_of([self.options.decoding.seed or 0, context, repeat])[:12], 16)
        return TextRequest(prompt_request(spec, ids, length, settings, seed), until)

    def _check_repeats(self, request: Any, arguments: dict[str, Any]) -> None:
        cached = self.cache_hook.dbdict is not None and not arguments.get("do_sample")
        if cached and (request.repeats or 1) > 1 and arguments.get("temperature"):
            raise RequestError(
                f"--use_cache would return one text for all {request.repeats} repeats; give "
                "--gen_kwargs do_sample=True, or leave --use_cache out"
            )

    def _fitting(self, ids: list[int], length: int) -> list[int]:
        """The end of a context that leaves room for `length` tokens, as lm_eval cuts it."""
        if self.max_length is None:
            return ids
        room = self.max_length - length
        if room < 1:
            raise RequestError(
                f"{length} tokens leave no room for a prompt in the context of {self.max_length} "
                f"tokens of {self.options.pretrained}; ask for fewer, or give max_length"
            )
        if len(ids) > room:
            warning_once(log, f"prompts longer than {room} tokens lose their beginning")
        return ids[-room:]

    def _loglikelihood_tokens(
        self, requests: Sequence[tuple[tuple[str, str], list[int], list[int]]], **kwargs: Any
    ) -> list[tuple[float, bool]]:
        """Log-likelihoods by LLaDA's estimator, and whether the rule would write the target."""
        pairs = [
            Continuation(self._fitting(context, len(target)), target)
            for _, context, target in requests
        ]
        answers: dict[int, tuple[float, bool]] = {}
        order = longest_first([len(pair.prefix) + len(pair.target) for pair in pairs])
        ordered = [pairs[number] for number in order]
        greedy = self._written(ordered)
        with self._bar(len(pairs), "loglikelihood", bool(kwargs.get("disable_tqdm"))) as bar:
            for number, value, same in zip(order, self._estimates(ordered), greedy, strict=True):
                answers[number] = value, same
                self.cache_hook.add_partial("loglikelihood", requests[number][0], answers[number])
                bar.update()
        return [answers[number] for number in range(len(pairs))]

    def loglikelihood_rolling(
        self, requests: Sequence[Any], disable_tqdm: bool = False
    ) -> list[float]:
        """Log-likelihoods of whole texts; long ones are cut into windows of the context length."""
        windows = [self._windows(request.args[0]) for request in requests]
        values = self._estimates([pair for pairs in windows for pair in pairs])
        sums = []
        with self._bar(len(requests), "loglikelihood_rolling", disable_tqdm) as bar:
            for request, pairs in zip(requests, windows, strict=True):
                sums.append(float(sum(next(values) for _ in pairs)))
                self.cache_hook.add_partial("loglikelihood_rolling", request.args, sums[-1])
                bar.update()
        return sums

    def _windows(self, text: str) -> list[Continuation]:
        ids, longest = self.tok_encode(text), (self.max_length or LONGEST) - 1
        windows = get_rolling_token_windows(ids, self.prefix_token_id, longest, 1)
        return [Continuation(*make_disjoint_window(window)) for window in windows]

    def _estimates(self, pairs: Sequence[Continuation]) -> Iterator[float]:
        if self.options.decoding.cache not in (None, "none"):
            raise RequestError(
                f"cache={self.options.decoding.cache} works for generated texts only, not for "
                "likelihoods; leave cache out"
            )
        options, seed = self.options, self.options.decoding.seed or 0
        return log_likelihoods(self.model, pairs, options.mc_num, seed, options.batch_size)

    def _written(self, pairs: Sequence[Continuation]) -> list[bool]:
        if not self.options.check_greedy:
            return [False] * len(pairs)
        resolved = self.session.resolve()
        size = self.options.batch_size
        return would_write(self.model, pairs, resolved.settings, resolved.seed, size)

    def _bar(self, total: int, kind: str, quiet: bool) -> Any:
        return tqdm(total=total, desc=f"unmask {kind}", disable=quiet or self.rank != 0)

    # Several processes.

    def all_gather(self, tensor: torch.Tensor) -> torch.Tensor:
        return self.ranks.all_gather(tensor)

    def gather_object(self, obj: Any, dst: int = 0) -> list[Any] | None:
        return self.ranks.gather(obj, dst)

    def barrier(self) -> None:
        self.ranks.wait()
