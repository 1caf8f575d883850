"""Tasks of lm_eval in local files: word problems like GSM8K, choices of endings, whole texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from unmask.embedded.tasks import TASKS

SPLIT = {"test_split": "test", "metadata": {"version": 1.0}}
EXACT = [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}]
NUMBER = [
    {
        "name": "strict-match",
        "filter": [
            {"function": "regex", "regex_pattern": r"####\s*(-?[0-9.,]*[0-9])", "group_select": -1},
            {"function": "take_first"},
        ],
    }
]


def write_words(folder: Path, count: int, **changes: Any) -> Path:
    """The first word problems that `unmask eval --task words` asks, as a task `local_words`."""
    rows = [
        {"question": problem.prompt, "answer": problem.answer}
        for problem in TASKS["words"].sample("test", count)
    ]
    task = {
        "output_type": "generate_until",
        "doc_to_text": "{{question}}",
        "doc_to_target": "{{answer.split('####')[-1].strip()}}",
        "generation_kwargs": {"until": ["Question:"], "do_sample": False, "temperature": 0.0},
        "filter_list": NUMBER,
        "metric_list": EXACT,
    }
    return write_task(folder, "local_words", rows, {**task, **changes})


def write_choices(folder: Path, count: int) -> Path:
    """The right count against two wrong ones, as a task `local_choices`."""
    rows = []
    for problem in TASKS["words"].sample("test", count):
        right = int(problem.facts)
        endings = [f"#### {right + shift}" for shift in (0, 1, 7)]
        rows.append({"question": problem.prompt, "endings": endings, "label": 0})
    task = {
        "output_type": "multiple_choice",
        "doc_to_text": "{{question}}",
        "doc_to_choice": "endings",
        "doc_to_target": "label",
        "metric_list": [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}],
    }
    return write_task(folder, "local_choices", rows, task)


def write_texts(folder: Path, count: int) -> Path:
    """Whole answers, for their perplexity, as a task `local_texts`."""
    rows = [{"text": problem.answer} for problem in TASKS["words"].sample("test", count)]
    task = {
        "output_type": "loglikelihood_rolling",
        "doc_to_text": "",
        "doc_to_target": "{{text}}",
        "metric_list": [{"metric": "word_perplexity"}],
    }
    return write_task(folder, "local_texts", rows, task)


def write_task(folder: Path, name: str, rows: list[dict[str, Any]], task: dict[str, Any]) -> Path:
    """Write the rows as JSON lines, and the YAML file of the task."""
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / f"{name}.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    kept = {"data_files": {"test": str(data)}, "cache_dir": str(folder / "datasets")}
    whole = {"task": name, "dataset_path": "json", "dataset_kwargs": kept, **SPLIT, **task}
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(whole))
    return file


def read_output(folder: Path, name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The results and the samples of a task that lm_eval wrote to --output_path."""
    (results,) = folder.rglob("results_*.json")
    (samples,) = folder.rglob(f"samples_{name}_*.jsonl")
    lines = samples.read_text().splitlines()
    return json.loads(results.read_text()), [json.loads(line) for line in lines]
