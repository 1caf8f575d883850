"""The model class, called as lm_eval calls it."""

import math
import pickle
import re
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from tests.checkpoints import EOT, make_llada, make_sdar
from tests.integrations.lm_eval.harness_tasks import write_choices, write_texts, write_words
from unmask import load
from unmask.embedded.tasks import TASKS
from unmask.errors import RequestError
from unmask.rules.spelling import for_file
from unmask.studies.likelihood import Continuation, log_likelihoods
from unmask.text.session import Session

pytest.importorskip("lm_eval")
pytestmark = pytest.mark.filterwarnings("default")  # of the harness and what it imports
RULE = "confidence | swd(5) | eb(0.1)"
PENS = "Ann has 12 pens. She buys 3, then loses 5. How many now?"


@pytest.fixture(autouse=True)
def no_look_at_the_machine(monkeypatch):
    """Skip lm_eval's report on the machine, which takes a second per run."""
    monkeypatch.setattr("lm_eval.evaluator.add_env_info", lambda results: None)


def unmask_lm(**arguments):
    from unmask.integrations.lm_eval import UnmaskLM

    return UnmaskLM(**{"rule": RULE, "device": "cpu", **arguments})


@pytest.fixture(scope="module")
def embedded():
    return unmask_lm(block=16, mc_num=15)


def asked(kind, *arguments, repeats=1):
    from lm_eval.api.instance import Instance

    return Instance(kind, {}, arguments, 0, ("task", 0, repeats))


def texts(lm, prompts, repeats=1, **given):
    requests = [asked("generate_until", prompt, given, repeats=repeats) for prompt in prompts]
    return lm.generate_until(requests, disable_tqdm=True)


def chats(lm, count=5):
    problems = [problem.prompt for problem in TASKS["words"].sample("test", count)]
    users = [[{"role": "user", "content": prompt}] for prompt in [*problems, PENS]]
    return [lm.apply_chat_template(chat) for chat in users]


def test_the_recommended_rule_is_told_where_none_is_given(caplog):
    with caplog.at_level("INFO"):
        unmask_lm(rule=None)
        assert "unmask: rule entropy | threshold(-0.1) in blocks of 16 (measured" in caplog.text
        caplog.clear()
        unmask_lm()
    assert "unmask: rule" not in caplog.text


def test_texts_come_in_order_and_equal_those_of_generate_alone(embedded):
    session, prompts = Session(rule=RULE, block=16, length=32), chats(embedded)
    written = texts(embedded, prompts, max_gen_toks=32)
    assert len({len(prompt) for prompt in prompts}) > 2
    for prompt, text in zip(prompts, written, strict=True):
        answer = session.generate(prompt, chat=False)
        assert (text, text.nfe, text.tokens) == (answer.text, answer.nfe, answer.tokens)


def test_length_auto_grows_up_to_the_task_s_length_as_generate_does_alone():
    rule = "confidence | threshold(0.9)"
    lm = unmask_lm(rule=rule, length="auto", batch_size=4)
    session = Session(rule=rule, length="auto", longest=40)
    prompts = chats(lm)
    written = texts(lm, prompts, max_gen_toks=40)
    assert len({text.nfe for text in written}) > 1
    for prompt, text in zip(prompts, written, strict=True):
        answer = session.generate(prompt, chat=False)
        assert (text, text.nfe, text.tokens) == (answer.text, answer.nfe, answer.tokens)


def test_a_stop_string_cuts_the_text_and_saves_the_forwards_behind_it(embedded):
    whole = texts(embedded, chats(embedded))
    cut = texts(embedded, chats(embedded), until=["=", "####"])
    for text, short in zip(whole, cut, strict=True):
        assert short == re.split("=|####", text)[0]
        assert short.nfe <= text.nfe
    assert sum(text.nfe for text in cut) < sum(text.nfe for text in whole)


def test_requests_of_unequal_settings_share_a_batch(embedded):
    prompts = chats(embedded)
    kinds = [{"max_gen_toks": 16}, {"max_gen_toks": 40, "until": "."}, {}] * 2
    requests = [asked("generate_until", *pair) for pair in zip(prompts, kinds, strict=True)]
    together = embedded.generate_until(requests, disable_tqdm=True)
    alone = [texts(embedded, [p], **kind)[0] for p, kind in zip(prompts, kinds, strict=True)]
    assert together == alone


def test_repeats_are_drawn_apart_and_drawn_again_the_same(embedded):
    prompt = chats(embedded)[-1]
    given = {"do_sample": True, "temperature": 1.5}
    written = texts(embedded, [prompt] * 4, repeats=4, **given)
    assert len(set(written)) > 1
    assert texts(embedded, [prompt] * 4, repeats=4, **given) == written
    assert texts(unmask_lm(block=16, seed=1), [prompt] * 4, repeats=4, **given) != written


def test_greedy_tasks_overrule_a_temperature(embedded):
    prompts = chats(embedded)
    plain = texts(embedded, prompts)
    assert texts(embedded, prompts, do_sample=False, temperature=1.5, top_p=0.9) == plain
    assert texts(embedded, prompts, temperature=0.0, num_beams=1) == plain


def test_a_text_keeps_its_cost_on_its_way_through_a_cache(embedded):
    (text,) = texts(embedded, chats(embedded)[-1:])
    again = pickle.loads(pickle.dumps(text))
    assert (again, again.nfe, again.tokens) == (text, text.nfe, text.tokens)
    assert isinstance(again, str)


def test_chats_of_several_turns_and_a_begun_answer_are_rendered_by_the_models_template(tmp_path):
    lm = unmask_lm(pretrained=make_llada(tmp_path / "tiny"))
    chat = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Let me"}]
    begun = lm.apply_chat_template(chat, add_generation_prompt=False)
    assert begun.endswith("assistant<|end_header_id|>\n\nLet me")
    assert lm.tok_encode(begun).count(EOT) == 1
    assert lm.apply_chat_template(chat).count("<|eot_id|>") == 2
    assert lm.chat_template(True) == lm.tokenizer.template
    assert lm.chat_template(False) is None


def test_a_model_without_a_template_says_so(tmp_path):
    lm = unmask_lm(pretrained=make_llada(tmp_path / "bare", template=None))
    with pytest.raises(RequestError, match="has no chat template; leave --apply_chat_template out"):
        lm.chat_template(True)


def test_a_prompt_that_is_too_long_keeps_its_end(embedded):
    lm = unmask_lm(max_length=40)
    long = chats(embedded)[-1]
    (text,) = texts(lm, [long], max_gen_toks=24)
    kept = lm.tokenizer.decode(lm.tok_encode(long)[-16:])
    assert len(lm.tok_encode(long)) > 16
    assert [text] == texts(unmask_lm(), [kept], max_gen_toks=24)


def test_likelihoods_are_those_of_the_estimator_whatever_the_order(embedded):
    context, ends = chats(embedded)[-1], ["12 + 3 = 15.", "12 + 3 = 16.", "#### 10"]
    requests = [asked("loglikelihood", context, end) for end in ends]
    estimates = embedded.loglikelihood(requests, disable_tqdm=True)
    encode = embedded.tok_encode
    pairs = [
        Continuation(encode(context), encode(context + end)[len(encode(context)) :]) for end in ends
    ]
    expected = list(log_likelihoods(embedded.model, pairs, samples=15, seed=0))
    assert [value for value, _ in estimates] == pytest.approx(expected, abs=1e-4)
    assert estimates[0][0] > estimates[1][0]
    for first, second in zip(estimates, embedded.loglikelihood(requests[::-1])[::-1], strict=True):
        assert first == pytest.approx(second, abs=1e-4)
    other = unmask_lm(block=16, mc_num=15, seed=1, check_greedy=False)
    values = [value for value, _ in other.loglikelihood(requests, disable_tqdm=True)]
    assert values[0] != pytest.approx(estimates[0][0])


def test_greedy_means_that_the_rule_would_write_it(embedded):
    lm, context = unmask_lm(mc_num=1), chats(embedded)[-1]
    (word,) = texts(lm, [context], max_gen_toks=1)
    requests = [asked("loglikelihood", context, end) for end in (word, "####")]
    assert word not in ("", "####")
    assert [greedy for _, greedy in lm.loglikelihood(requests)] == [True, False]
    quick = unmask_lm(mc_num=1, check_greedy=False)
    assert [greedy for _, greedy in quick.loglikelihood(requests)] == [False, False]


def test_a_long_text_is_looked_at_in_windows_and_every_token_once(embedded):
    lm = unmask_lm(max_length=21, mc_num=3)
    text = " ".join(problem.answer for problem in TASKS["words"].sample("test", 4))
    windows = lm._windows(text)
    assert len(windows) > 3
    assert [token for pair in windows for token in pair.target] == lm.tok_encode(text)
    assert windows[0].prefix == [lm.prefix_token_id]
    for before, here in pairwise(windows):
        assert [*before.prefix, *before.target][-len(here.prefix) :] == here.prefix
    (estimate,) = lm.loglikelihood_rolling([asked("loglikelihood_rolling", text)])
    assert estimate == pytest.approx(sum(log_likelihoods(lm.model, windows, samples=3)))


def test_a_block_causal_model_writes_and_judges_in_its_blocks(tmp_path):
    folder = make_sdar(tmp_path / "sdar")
    lm = unmask_lm(pretrained=folder, rule="confidence | top(1)", mc_num=15)
    (text,) = texts(lm, ["Hello"], max_gen_toks=7)
    assert text.nfe == 7  # byte 5 to 12, with the last block filled to its end
    model, tokenizer = load(folder)
    pair = Continuation(tokenizer.encode("Hello"), tokenizer.encode(" world"))
    ((value, _),) = lm.loglikelihood([asked("loglikelihood", "Hello", " world")])
    assert value == pytest.approx(next(log_likelihoods(model, [pair], samples=15)))


def test_a_cache_is_for_texts(tmp_path):
    lm = unmask_lm(block=16, cache="prefix")
    assert texts(lm, chats(lm)[-1:])[0]
    with pytest.raises(RequestError, match="cache=prefix works for generated texts only"):
        lm.loglikelihood([asked("loglikelihood", "Ann", " has")])


def test_sampled_repeats_and_a_cache_of_responses_do_not_go_together(tmp_path):
    from lm_eval.api.model import CachingLM

    lm = unmask_lm()
    cached = CachingLM(lm, str(tmp_path / "cache.db"))
    request = asked("generate_until", "Ann", {"temperature": 1.0}, repeats=2)
    with pytest.raises(RequestError, match="would return one text for all 2 repeats"):
        cached.generate_until([request, request])


def test_likelihoods_of_unequal_settings_share_no_cache(tmp_path, monkeypatch):
    from lm_eval.api.model import CachingLM

    file = str(tmp_path / "cache.db")
    pair = asked("loglikelihood", "Ann has 12 pens.", " She buys 3, then loses 5.")
    text = asked("loglikelihood_rolling", PENS)

    def values(lm):
        return lm.loglikelihood([pair]), lm.loglikelihood_rolling([text])

    settings = [{"mc_num": 4}, {"mc_num": 4, "seed": 1}, {"mc_num": 9, "dtype": "bfloat16"}]
    apart = [values(unmask_lm(**arguments)) for arguments in settings]
    assert [values(CachingLM(unmask_lm(**arguments), file)) for arguments in settings] == apart
    monkeypatch.setattr("unmask.integrations.lm_eval.model.log_likelihoods", None)
    assert [values(CachingLM(unmask_lm(**arguments), file)) for arguments in settings] == apart


def test_what_was_written_before_an_interruption_is_not_written_again(embedded, tmp_path):
    from lm_eval.api.model import CachingLM

    class Tiring:
        """The model; it raises after a number of forwards."""

        def __init__(self, model, forwards):
            self.model, self.left = model, forwards
            self.spec, self.device, self.head = model.spec, model.device, model.head

        def trunk(self, canvas):
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt
            return self.model.trunk(canvas)

    requests = [asked("generate_until", prompt, {}) for prompt in chats(embedded)]
    file = str(tmp_path / "cache.db")
    lm = unmask_lm(block=16, mc_num=15, batch_size=1)
    lm.model = Tiring(lm.model, sum(text.nfe for text in texts(embedded, chats(embedded))) - 1)
    with pytest.raises(KeyboardInterrupt):
        CachingLM(lm, file).generate_until(requests)
    again = unmask_lm(block=16, mc_num=15)
    again.model = Tiring(again.model, 30)  # enough for the last text, not for all
    assert CachingLM(again, file).generate_until(requests) == texts(embedded, chats(embedded))


def test_the_stock_gsm8k_runs_on_local_files(tmp_path):
    from lm_eval import tasks

    from unmask.integrations.lm_eval import simple_evaluate

    words = write_words(tmp_path, 4).with_suffix(".jsonl")
    kept = {"data_files": {"train": str(words), "test": str(words)}, "cache_dir": str(tmp_path)}
    stock = Path(tasks.__file__).parent / "gsm8k" / "gsm8k.yaml"
    local = {"include": str(stock), "dataset_path": "json", "dataset_name": None}
    file = tmp_path / "gsm8k.yaml"
    file.write_text(yaml.safe_dump({**local, "dataset_kwargs": kept, "num_fewshot": 1}))
    results = simple_evaluate(
        "unmask",
        model_args={"rule": RULE, "length": 24},
        tasks=["gsm8k"],
        task_manager=tasks.TaskManager(include_path=str(tmp_path), include_defaults=False),
        bootstrap_iters=0,
    )
    scores, samples = results["results"]["gsm8k"], results["samples"]["gsm8k"]
    assert {"exact_match,strict-match", "exact_match,flexible-extract", "nfe,none"} <= set(scores)
    assert len(samples) == 8  # two filters
    assert scores["nfe,none"] == sum(sample["nfe"][0][0] for sample in samples) / 8
    assert all(s["arguments"][0][0].startswith("Question: ") for s in samples)


def test_arguments_as_one_text_are_read_as_the_command_line_reads_them():
    from lm_eval.api.registry import get_model

    rule = "entropy | swd(30, kl=cur_prev) | threshold(-0.7)"
    lm = get_model("unmask").create_from_arg_string(f"rule={rule},block=full", {"batch_size": 2})
    assert lm.settings["rule"] == for_file(rule)
    assert lm.options.batch_size == 2


def test_the_other_models_of_the_harness_are_still_there():
    from lm_eval.api.registry import get_model

    import unmask.integrations.lm_eval  # noqa: F401

    assert get_model("dummy").__name__ == "DummyLM"
    assert get_model("unmask").__name__ == "UnmaskLM"


@pytest.mark.parametrize("write", [write_choices, write_texts, write_words])
def test_every_kind_of_task_runs_in_the_harness(tmp_path, write):
    from lm_eval.tasks import TaskManager

    from unmask.integrations.lm_eval import simple_evaluate

    file = write(tmp_path, 12)
    results = simple_evaluate(
        "unmask",
        model_args={"rule": RULE, "mc_num": 7, "check_greedy": False},
        tasks=[file.stem],
        device="cpu",
        task_manager=TaskManager(include_path=str(tmp_path), include_defaults=False),
        apply_chat_template=write is not write_texts,
        bootstrap_iters=0,
        log_samples=False,
    )
    assert "samples" not in results
    scores = results["results"][file.stem]
    if write is write_choices:
        assert scores["acc,none"] > 0.5  # chance is a third
    elif write is write_texts:
        answers = [problem.answer for problem in TASKS["words"].sample("test", 12)]
        requests = [asked("loglikelihood_rolling", answer) for answer in answers]
        total = sum(unmask_lm(mc_num=7).loglikelihood_rolling(requests))
        words = sum(len(answer.split()) for answer in answers)
        assert scores["word_perplexity,none"] == pytest.approx(math.exp(-total / words), rel=1e-3)
    else:
        assert 8 < scores["nfe,none"] < 48
    assert ("nfe,none" in scores) == (write is write_words)


def test_models_of_others_pass_through_untouched(tmp_path):
    from lm_eval.api.model import LM
    from lm_eval.tasks import TaskManager

    from unmask.integrations.lm_eval import simple_evaluate

    class FortyTwo(LM):
        loglikelihood = loglikelihood_rolling = None

        def generate_until(self, requests):
            return ["#### 42"] * len(requests)

    write_words(tmp_path, 2)
    manager = TaskManager(include_path=str(tmp_path), include_defaults=False)
    results = simple_evaluate(
        FortyTwo(), tasks=["local_words"], task_manager=manager, bootstrap_iters=0
    )
    assert results["samples"]["local_words"][0]["filtered_resps"] == ["42"]
    assert "nfe" not in results["samples"]["local_words"][0]
    assert "nfe,none" not in results["results"]["local_words"]
