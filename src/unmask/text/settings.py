"""The settings of an answer as a record: with the same ones a run writes the same text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unmask.decoding.options import DecodingOptions
from unmask.decoding.resolve import Resolved
from unmask.models.fingerprint import sha_of
from unmask.rules.fingerprint import sources_of
from unmask.rules.spelling import for_key
from unmask.text.prompts import PromptFormat


def settings_record(
    model: Mapping[str, Any], options: DecodingOptions, resolved: Resolved, form: PromptFormat
) -> dict[str, Any]:
    """Everything that an answer depends on, for JSON, and its fingerprint `sha`.

    `model` names the model and its dtype; `resolved` is what became of the options.
    """
    rule = resolved.settings.rule
    record = {
        **model,
        "cache": options.cache or "none",
        "guidance": options.guidance,
        **resolved.record(),
        "chat": form.in_chat(form.infill),
        "system": form.system,
        "infill": form.infill,
    }
    for name in ("quantize", "pack", "family", "template_args"):  # no key where there is none
        if (value := getattr(options, name)) is not None:
            record[name] = value
    if parts := sources_of(rule):
        record["parts"] = parts
    return {**record, "sha": sha_of({**record, "rule": for_key(str(rule))})}
