"""Compares rules on a task: decodes the same examples under each of them, and grades."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from unmask.decoding.options import OPTIONS
from unmask.embedded import NAME
from unmask.errors import LabError, UnknownName
from unmask.lab.benchmarks import Example, benchmark
from unmask.lab.equal_cost import RuleCurve
from unmask.lab.grading import Tools
from unmask.lab.report.panels import TrialSetting
from unmask.lab.rule_comparison import RuleComparison
from unmask.lab.sweep.grid import KEYS, Setting, along_knob, spelled_out
from unmask.lab.sweep.plan import Work, work_of
from unmask.lab.sweep.run import check_graders, run, summaries
from unmask.lab.sweep.run_options import ProgressListener, RunOptions, Silent
from unmask.rules.rule import Rule
from unmask.text.prompts import several
from unmask.text.session import Session


def compare(
    rules: Sequence[str | Rule] | str | Rule,
    task: str,
    model: Session | str | Path | None = None,
    *,
    curve: bool = False,
    limit: int | None = None,
    store: Path | str | None = None,
    data: Path | str | None = None,
    **options: Any,
) -> RuleComparison:
    """Decode and grade a task under several rules; the first is the baseline.

    Args:
        rules: rules, recipes, or rules with braces, which stand for several; or one of them.
        task: the name of a task; `unmask tasks` lists them.
        model: a session, a checkpoint folder, a hub id, or None for the embedded model.
        curve: sweep the knob of every rule, over the values in braces or those that its selection
            declares, and compare the rules at equal forwards.
        limit: only the first examples (default: all).
        store: keep every finished example in this file, so that the same call goes on after an
            interruption (default: a temporary file).
        data: folder of the benchmarks' JSON lines.
        options: decoding options that all rules share, such as `length`, `block` or `eos`; the
            task's preset gives the others.
    """
    if "rule" in options:
        raise LabError("compare has the rules as its first argument; leave out rule")
    session = model if isinstance(model, Session) else Session(model)
    folder = None if data is None else Path(data)
    limit = None if limit is None else KEYS["limit"].check("limit", limit)
    texts = [rules] if isinstance(rules, str | Rule) else several(rules, "a list of rules")
    usual = Setting(session.name, task, session.changed(options), limit=limit)
    named = rules_of([str(text) for text in texts], curve)
    works = works_of(named, usual, session, benchmark(task).load(folder))
    with _file(store) as file, Tools.of([benchmark(task)]) as tools:
        options_of_run = RunOptions(file, (str(session.device),), data=folder)
        return compared(works, options_of_run, tools, Silent())


def rules_of(texts: Sequence[str], curve: bool) -> dict[str, list[str]]:
    """The rules that are compared, by name, each with its settings.

    A text with braces stands for several rules, or with `curve` for one at several knobs. With
    `curve`, a rule without braces takes the values that its selection declares.
    """
    if curve:
        named = {text: spelled_out(text if "{" in text else along_knob(text)) for text in texts}
    else:
        named = {rule: [rule] for text in texts for rule in spelled_out(text)}
    if not named:
        raise LabError("compare needs at least one rule")
    return named


def works_of(
    rules: Mapping[str, Sequence[str]], usual: Setting, session: Session, examples: list[Example]
) -> dict[str, list[Work]]:
    """The trials of each rule, checked: all are decoded in the same way."""
    works = {
        name: [
            work_of(replace(usual, options=replace(usual.options, rule=text)), session, examples)
            for text in texts
        ]
        for name, texts in rules.items()
    }
    every = [work for members in works.values() for work in members]
    for work in every:
        work.request(work.asks[0])  # wrong options fail before anything is decoded
        _check_alike(every[0], work)
    return works


def chosen(works: Mapping[str, Sequence[Work]], names: Sequence[str]) -> dict[str, list[Work]]:
    """The same trials on the examples of these names."""
    known = next(iter(works.values()))[0].by_name
    for name in names:
        if name not in known:
            raise UnknownName("example", name, known)
    return {rule: [work.only(names) for work in members] for rule, members in works.items()}


def compared(
    works: Mapping[str, Sequence[Work]],
    options: RunOptions,
    tools: Tools,
    progress: ProgressListener,
) -> RuleComparison:
    """Decode and grade what the store lacks, and compare the rules."""
    every = [work for members in works.values() for work in members]
    check_graders(every, tools)
    left = run(every, options, tools, progress)
    if left:
        raise LabError(f"other workers hold {left} examples; run again when they are done")
    measured = iter(summaries(options.store, every))
    curves = [
        RuleCurve(name, tuple(next(measured) for _ in members)) for name, members in works.items()
    ]
    return RuleComparison(tuple(curves), _command(every[0], options))


def _check_alike(first: Work, work: Work) -> None:
    one, other = TrialSetting.of(first.trial), TrialSetting.of(work.trial)
    lengths = first.trial.length, work.trial.length
    if one == other and lengths[0] == lengths[1]:
        return
    words = [
        f"{each.trial.rule} in {setting.words([one, other])}, {each.trial.length} tokens"
        for each, setting in ((first, one), (work, other))
    ]
    raise LabError(
        f"rules are compared in one setting, but these differ: {words[0]}; {words[1]}; give "
        "--block, --length or --eos, which then hold for all rules"
    )


def _command(work: Work, options: RunOptions) -> tuple[str, ...]:
    """The options that repeat a comparison, without its rules."""
    setting = work.setting
    words = ["--task", setting.task]
    words += ["--model", setting.model] if setting.model != NAME else []
    words += ["--preset", setting.preset] if setting.preset else []
    words += ["--data", str(options.data)] if options.data else []
    for name in options.imports:
        words += ["--import", name]
    for name, value in setting.options.given().items():
        if name != "rule":
            flag = f"--{name.replace('_', '-')}"
            words += [flag] if OPTIONS[name].kind == "switch" else [flag, str(value)]
    return tuple(words)


@contextmanager
def _file(store: Path | str | None) -> Iterator[Path]:
    if store is not None:
        yield Path(store)
        return
    with TemporaryDirectory() as folder:
        yield Path(folder) / "compare.sqlite"
