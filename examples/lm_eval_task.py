"""Writes a task for lm-evaluation-harness, and evaluates two rules on it.

python examples/lm_eval_task.py FOLDER          writes words.jsonl and words.yaml
python examples/lm_eval_task.py FOLDER --run    also evaluates the embedded model on them
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from unmask.embedded.tasks import TASKS

TASK = """\
task: words
dataset_path: json
dataset_kwargs:
  data_files: {{test: {data}}}
output_type: generate_until
test_split: test
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer.split('####')[-1].strip()}}}}"
generation_kwargs:
  until: ["Question:"]
filter_list:
  - name: strict-match
    filter:
      - {{function: regex, regex_pattern: '#### (-?[0-9.,]*[0-9])', group_select: -1}}
      - {{function: take_first}}
metric_list:
  - {{metric: exact_match, aggregation: mean, higher_is_better: true}}
metadata: {{version: 1.0}}
"""


def write(folder: Path, count: int = 40) -> None:
    """Write held-out word problems as JSON lines, and the YAML file of the task."""
    folder.mkdir(parents=True, exist_ok=True)
    data = folder.resolve() / "words.jsonl"
    problems = TASKS["words"].sample("test", count)
    rows = [{"question": problem.prompt, "answer": problem.answer} for problem in problems]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "words.yaml").write_text(TASK.format(data=data))


def run(folder: Path) -> None:
    """Print accuracy and forwards with and without SWD."""
    from lm_eval.tasks import TaskManager

    from unmask.integrations.lm_eval import simple_evaluate

    manager = TaskManager(include_path=str(folder), include_defaults=False)
    for rule in ("confidence | eb(0.1)", "confidence | swd(5) | eb(0.1)"):
        results = simple_evaluate(
            "unmask",
            model_args={"pretrained": "embedded", "rule": rule, "length": 24},
            tasks=["words"],
            task_manager=manager,
            apply_chat_template=True,
        )
        assert results is not None  # None only in further processes of torchrun
        means, sample = results["results"]["words"], results["samples"]["words"][0]
        print(f"{rule}: {means['exact_match,strict-match']:.1%} at NFE {means['nfe,none']:.1f}")
        print(f"  {sample['resps'][0][0]!r} took {sample['nfe'][0][0]} forwards")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--run", action="store_true")
    arguments = parser.parse_args()
    write(arguments.folder)
    if arguments.run:
        run(arguments.folder)
