"""The embedded model's tokenizer: one token per word, number, sign or line break with its indent.

A token includes the space before it, so that decoding returns the exact text.
"""

from __future__ import annotations

from itertools import islice
from random import Random

from tokenizers import Regex, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import WordLevel

from unmask.embedded.tasks import TASKS
from unmask.embedded.tasks.words import LARGEST

EOS, MASK, EOT, USER, ASSISTANT, UNKNOWN = (
    "<|endoftext|>",
    "<|mdm_mask|>",
    "<|eot_id|>",
    "<|user|>",
    "<|assistant|>",
    "<|unknown|>",
)
SPECIAL = (EOS, MASK, EOT, USER, ASSISTANT, UNKNOWN)
TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['role'] == 'user' %}<|user|> {{ message['content'] | trim }}"
    "{% elif message['role'] == 'assistant' %}<|assistant|>{{ message['content'] }}<|eot_id|>"
    "{% else %}{{ raise_exception('the embedded model knows no role ' ~ message['role']) }}"
    "{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
_PIECE = r" ?[A-Za-z_]+| ?[0-9]+| ?####| ?==|\n *| ?[^\sA-Za-z0-9]| +"
_ENOUGH = 20_000  # problems of a task that together contain all of its words


def build() -> Tokenizer:
    """Build the vocabulary from the tasks: every piece that they use, sorted."""
    engine = Tokenizer(WordLevel({UNKNOWN: 0}, unk_token=UNKNOWN))
    engine.pre_tokenizer = pre_tokenizers.Split(Regex(_PIECE), "isolated")
    pieces = {f" {number}" for number in range(LARGEST + 1)}
    for task in TASKS.values():
        random = Random(task.name)
        for problem in islice(
            iter(lambda task=task, random=random: task.draw(random), None), _ENOUGH
        ):
            for text in (f" {problem.prompt}", problem.answer):
                cut = engine.pre_tokenizer.pre_tokenize_str(text)
                pieces.update(piece for piece, _ in cut)
    vocabulary = {piece: i for i, piece in enumerate([*SPECIAL, *sorted(pieces)])}
    engine.model = WordLevel(vocabulary, unk_token=UNKNOWN)
    engine.decoder = decoders.Fuse()
    engine.add_special_tokens(list(SPECIAL))
    return engine


def prompt_text(prompt: str) -> str:
    """A prompt as the chat template renders it."""
    return f"{USER} {prompt}{ASSISTANT}"
