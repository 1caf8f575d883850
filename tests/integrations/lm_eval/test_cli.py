"""The real lm_eval command line on local files."""

import json
import multiprocessing
import os
import sys
from contextlib import closing

import pytest

from tests.integrations.lm_eval.harness_tasks import read_output, write_choices, write_words
from unmask.cli import main
from unmask.lab.sweep.store import Store
from unmask.rules.spelling import for_file
from unmask.server.run import listen

pytest.importorskip("lm_eval")
pytestmark = pytest.mark.filterwarnings("default")  # of the harness and what it imports
RULE = "confidence | swd(5) | eb(0.1)"
COUNT = 16


@pytest.fixture(autouse=True)
def no_look_at_the_machine(monkeypatch):
    """Skip lm_eval's report on the machine, which takes a second per run."""
    monkeypatch.setattr("lm_eval.evaluator.add_env_info", lambda results: None)


def launched(tmp_path, *words, count):
    """Run `unmask lm-eval` in several processes, as `torchrun` starts them; forks of this one."""
    with closing(listen("127.0.0.1", 0)) as bound:
        port = str(bound.getsockname()[1])
    about = {"WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count, "MASTER_ADDR": "127.0.0.1",
             "MASTER_PORT": port, "TOKENIZERS_PARALLELISM": "false"}  # fmt: skip
    fork = multiprocessing.get_context("fork")
    processes = []
    for rank in range(count):
        environment = {**about, "RANK": rank, "LOCAL_RANK": rank}
        arguments = (environment, ["lm-eval", *map(str, words)], tmp_path / f"told-{rank}")
        processes.append(fork.Process(target=run_one, args=arguments))
        processes[-1].start()
    for rank, process in enumerate(processes):
        process.join(240)
        process.kill()
        assert process.exitcode == 0, (tmp_path / f"told-{rank}").read_text()


def run_one(environment, words, told):
    """One of several processes."""
    os.environ |= {name: str(value) for name, value in environment.items()}
    with told.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    code = main(words)
    sys.stderr.flush()
    os._exit(code)


def lm_eval(tmp_path, model, output, *words):
    """Run `unmask lm-eval` in this process; returns results and samples."""
    options = ["--include_path", tmp_path, "--output_path", tmp_path / output, "--log_samples"]
    arguments = ["--tasks", "local_words", "--model_args", model, "--apply_chat_template"]
    assert main(["lm-eval", *map(str, [*arguments, *options, *words])]) == 0
    return read_output(tmp_path / output, "local_words")


def test_a_local_task_scores_as_unmask_eval_does_item_by_item(tmp_path, capsys):
    write_words(tmp_path, COUNT)
    model = f"pretrained=embedded,rule={RULE},block=16"
    results, samples = lm_eval(tmp_path, model, "out")
    out = capsys.readouterr().out

    store = tmp_path / "lab.sqlite"
    asked = ["eval", "--task", "words", "--rule", RULE, "--limit", COUNT, "--store", store]
    assert main([str(word) for word in asked]) == 0
    with Store(store) as kept:
        (trial,) = kept.trials()
        ours = {row.ask.example: row for row in kept.rows(trial)}

    assert len(samples) == len(ours) == COUNT
    for sample in samples:
        row = ours[f"words/{sample['doc_id']}"]
        assert sample["exact_match"] == row.grade["acc"], row
        assert sample["nfe"] == [[row.answer["nfe"]]]
        assert sample["tokens"] == [[row.answer["tokens"]]]
    right = sum(row.grade["acc"] for row in ours.values())
    nfe = sum(row.answer["nfe"] for row in ours.values())
    scores = results["results"]["local_words"]
    assert 0 < right < COUNT
    assert scores["exact_match,strict-match"] == pytest.approx(right / COUNT)
    assert scores["nfe,none"] == pytest.approx(nfe / COUNT)
    assert results["config"]["unmask"]["rule"] == for_file(RULE)
    assert "|local_words|" in out
    assert "|nfe " in out


def test_a_sweep_on_one_cache_serves_every_setting_with_its_own_texts(tmp_path, monkeypatch):
    from unmask.integrations.lm_eval import UnmaskLM

    write_words(tmp_path, 6)
    rules = {lam: f"rule=confidence | swd({lam}) | eb(0.1),length=24" for lam in (0, 5)}
    cache = ["--use_cache", tmp_path / "cache"]
    apart = {lam: lm_eval(tmp_path, rule, f"apart{lam}")[1] for lam, rule in rules.items()}
    swept = {lam: lm_eval(tmp_path, rule, f"swept{lam}", *cache)[1] for lam, rule in rules.items()}
    assert swept == apart
    assert [s["resps"] for s in apart[0]] != [s["resps"] for s in apart[5]]

    def fail(self, requests, disable_tqdm=False):
        raise AssertionError("this should have been in the cache")

    monkeypatch.setattr(UnmaskLM, "generate_until", fail)
    again = {lam: lm_eval(tmp_path, rule, f"again{lam}", *cache)[1] for lam, rule in rules.items()}
    assert again == apart  # with their NFE
    assert len(list(tmp_path.glob("cache*"))) == 1


def test_two_processes_share_the_documents_and_give_what_one_gives(tmp_path):
    write_words(tmp_path, 5)
    words = ["--tasks", "local_words", "--apply_chat_template", "--include_path", tmp_path]
    launched(tmp_path, *words, "--output_path", tmp_path / "two", "--log_samples", count=2)
    results, samples = read_output(tmp_path / "two", "local_words")
    alone, expected = lm_eval(tmp_path, "pretrained=embedded", "one")
    by_number = sorted(samples, key=lambda sample: sample["doc_id"])
    assert len(by_number) == 5
    for sample, other in zip(by_number, expected, strict=True):
        assert sample["filtered_resps"] == other["filtered_resps"]
        assert sample["nfe"][0][0] == other["nfe"][0][0]
    for name in ("exact_match,strict-match", "nfe,none"):
        scores = results["results"]["local_words"][name]
        assert scores == pytest.approx(alone["results"]["local_words"][name])


def test_a_rule_with_commas_and_equals_signs_comes_through(tmp_path):
    write_words(tmp_path, 2)
    rule = "entropy | swd(3, kl=cur_prev) | threshold(-0.7)"
    for number, model in enumerate(
        [
            f"length=24,rule={rule},eos=stop",
            f'length=24,rule="{rule}",eos=stop',
            json.dumps({"length": 24, "rule": rule, "eos": "stop"}),
        ]
    ):
        results, _ = lm_eval(tmp_path, model, f"out{number}")
        settings = results["config"]["unmask"]
        assert settings["rule"] == for_file(rule)
        assert (settings["length"], settings["eos"]) == (24, "stop")


def test_parts_of_ones_own_come_by_import(tmp_path):
    write_words(tmp_path, 2)
    file = tmp_path / "parts_for_lm_eval.py"
    file.write_text(
        "import unmask\n\n@unmask.selection\ndef all_now(view, scores):\n    return view.masked\n"
    )
    rule = "confidence | all_now"
    results, _ = lm_eval(tmp_path, f"length=24,rule={rule}", "out", "--import", file)
    assert results["config"]["unmask"]["rule"] == rule


def test_a_config_file_of_lm_eval_is_understood(tmp_path):
    write_words(tmp_path, 2)
    file = tmp_path / "config.yml"
    file.write_text(
        "tasks: [local_words]\nbatch_size: 2\napply_chat_template: true\n"
        f"include_path: {tmp_path}\noutput_path: {tmp_path / 'out'}\nlog_samples: true\n"
        "model_args: length=24,rule=confidence | swd(1, kl=cur_prev) | eb(0.1)\n"
    )
    assert main(["lm-eval", "--config", str(file)]) == 0
    results, _ = read_output(tmp_path / "out", "local_words")
    assert results["config"]["unmask"]["rule"] == for_file(
        "confidence | swd(1, kl=cur_prev) | eb(0.1)"
    )
    assert (results["config"]["batch_size"], results["config"]["device"]) == (2, "cpu")


def test_options_of_lm_eval_pass_through(tmp_path):
    write_words(tmp_path, 4)
    words = ["--limit", "3", "--gen_kwargs", 'max_gen_toks=16,until=["####"]', "--batch_size", "2"]
    results, samples = lm_eval(tmp_path, "pretrained=embedded", "out", *words)
    assert results["config"]["batch_size"] == "2"
    assert len(samples) == 3
    for sample in samples:
        assert "####" not in sample["resps"][0][0]
        assert sample["tokens"][0][0] <= 16


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--model_args", "rul=swd"], "unknown model argument 'rul'; did you mean 'rule'?"),
        (
            ["--model_args", "temperature=1"],
            "temperature is an argument of a task's generation; give it",
        ),
        (["--model_args", "rule=confidence | nope(1)"], "unknown"),
        (["--model_args", "block=0"], "block must be a whole number >= 1 or 'full', got 0"),
        (["--model_args", "mc_num=none"], "mc_num must be a whole number >= 1, got 'none'"),
        (["--model_args", "cache=prefx"], "got 'prefx'; did you mean 'prefix'?"),
        (["--model_args", "guidance=high"], "guidance must be a number >= 0, got 'high'"),
        (["--model_args", "check_greedy=2"], "check_greedy must be true or false, got '2'"),
        (["--model_args", "eos=never"], "eos must be one of keep, suppress"),
        (["--model_args", "pretrained=/no/such"], "'/no/such' is not a folder"),
        (["--batch_size", "auto"], "batch_size must be a whole number >= 1, got 'auto'"),
        (["--device", "tpu"], "device 'tpu' cannot be used"),
        (["--gen_kwargs", "num_beams=4"], "the task's generation has num_beams=4"),
        (["--gen_kwargs", "max_gen_toks=0"], "max_gen_toks must be a whole number >= 1, got 0"),
        (["--gen_kwargs", "max_gen_toks=128"], "128 tokens leave no room for a prompt in"),
        (["--gen_kwargs", "do_sample=True,temperature=-1"], "generation: temperature must be"),
        (["--apply_chat_template", "short"], "a model has one template without a name"),
        (["--config", "/no/such.yml"], "--config: Config file not found"),
        (["--log_samples"], "Specify --output_path if providing --log_samples"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_what_cannot_be_is_said_in_one_line(tmp_path, capsys, words, message):
    write_words(tmp_path, 1)
    base = ["lm-eval", "--tasks", "local_words", "--include_path", str(tmp_path)]
    assert main([*base, *words]) == 2
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.startswith("unmask lm-eval: ")
    assert message in last


def test_only_own_tasks_leave_lm_evals_thousands_unread(tmp_path):
    from unmask.integrations.lm_eval.launch import _only_own

    words, folder = write_words(tmp_path, 1), str(tmp_path)
    write_choices(tmp_path, 1)
    (tmp_path / "group.yaml").write_text("group: mine\ntask: [local_words, gsm8k]\n")
    assert _only_own(["local_words,local_choices"], folder)
    assert _only_own([str(words)], None)
    assert _only_own("local_words", folder)
    assert not _only_own(["local_words", "gsm8k"], folder)
    assert not _only_own(["mine"], folder)  # its members may be lm_eval's
    assert not _only_own(["local_*"], folder)
    assert not _only_own(["local_words"], None)
    assert not _only_own(None, folder)


def test_the_help_is_ours_and_lm_evals_is_a_word_away(capsys):
    for words, shown in ((["--help"], "check_greedy"), (["run", "--help"], "--num_fewshot")):
        with pytest.raises(SystemExit) as left:
            main(["lm-eval", *words])
        assert left.value.code == 0
        assert shown in capsys.readouterr().out


def test_without_the_extra_one_line_names_it(monkeypatch, capsys):
    for name in [name for name in sys.modules if name.startswith("unmask.integrations.lm_eval")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "lm_eval", None)
    assert main(["lm-eval", "--tasks", "gsm8k"]) == 2
    assert capsys.readouterr().err == (
        "unmask lm-eval: the harness needs lm_eval, which is not installed; "
        "pip install 'unmask[lm-eval]'\n"
    )
