"""Writes a folder for transformers' `generate(custom_generate=FOLDER)`."""

from __future__ import annotations

import pprint
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import unmask
from unmask.errors import RequestError
from unmask.integrations.transformers.arguments import check_options

MARK = "unmask export custom-generate"  # in every file that a later export may overwrite
_CODE = '''"""Decoding by a rule of unmask; made by `{mark}`."""

from unmask.integrations.transformers.generate import generate as decode
{imports}
OPTIONS = {options}


def generate(inputs=None, *, model, **arguments):
    """Called by model.generate(..., custom_generate=FOLDER, trust_remote_code=True)."""
    return decode(model, OPTIONS, inputs=inputs, **arguments)
'''
_PARTS = """from unmask.rules.plugins import import_parts

for name in {names}:  # the rule's own parts
    import_parts(name)
"""
_README = """---
library_name: transformers
tags: [custom_generate]
---

# Decoding by a rule of unmask

    {rule}

For masked diffusion language models in transformers; made by `{mark}`. It needs
unmask {version} or newer (`pip install 'unmask[transformers]'`).

    output = model.generate(
        **tokenizer("a prompt", return_tensors="pt"),
        custom_generate={folder!r},  # this folder, or its hub id
        trust_remote_code=True,
        max_new_tokens=128,
        streamer=TextDiffusionStreamer(tokenizer),  # or any other streamer, or none
        return_dict_in_generate=True,  # sequences, nfe, nfe_eos, tokens_per_forward
    )

A call may override every option that `custom_generate/generate.py` sets in OPTIONS: rule, block,
length (or max_new_tokens), eos, steps, seed and so on.
"""


def write(folder: Path, options: Mapping[str, Any], imports: Sequence[str] = ()) -> list[Path]:
    """Write the folder and return the files. A README that unmask did not write is kept.

    Args:
        folder: a new one, or that of a checkpoint.
        options: of every call; a call may override them.
        imports: files or modules that register the rule's own parts, imported before a call.
    """
    check_options(options)
    version = unmask.__version__
    values = pprint.pformat(dict(options), sort_dicts=False)
    parts = _PARTS.format(names=list(imports)) if imports else ""
    code = _CODE.format(mark=MARK, options=values, imports=parts)
    readme = _README.format(mark=MARK, rule=options["rule"], version=version, folder=str(folder))
    inside = folder / "custom_generate"
    _check_ours(inside / "generate.py")
    texts = {
        inside / "generate.py": code,
        inside / "requirements.txt": f"# {MARK}\nunmask>={version}\n",
    }
    if not (folder / "README.md").exists() or MARK in (folder / "README.md").read_text():
        texts[folder / "README.md"] = readme
    inside.mkdir(parents=True, exist_ok=True)
    for file, text in texts.items():
        file.write_text(text)
    return list(texts)


def _check_ours(file: Path) -> None:
    if file.exists() and MARK not in file.read_text():
        raise RequestError(
            f"{file} was not written by unmask; give another folder, or delete the file"
        )
