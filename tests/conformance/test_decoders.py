"""The golden cases of the original implementations, to the token."""

import json
import shutil
from itertools import combinations

import pytest
import torch

from tests.paths import ROOT
from unmask.conformance import Report, run
from unmask.conformance.cases import plan_of
from unmask.conformance.run import _run_case
from unmask.conformance.units import check_units
from unmask.errors import UnmaskError

GOLDEN = ROOT / "tests" / "golden" / "decoders"
SECOND = ROOT / "tests" / "golden" / "decoders-2"
FILES = sorted(
    [
        *GOLDEN.glob("swd_*.jsonl"),
        *GOLDEN.glob("upstream_*.jsonl"),
        *SECOND.glob("reference_*.jsonl"),
        *SECOND.glob("upstream_*.jsonl"),
    ]
)
DEFECTS = {  # recorded upstream defects, by id: listed with a reason, never counted
    "d2_ar/b/p0/b8_tNone",
    "d2_eb/a/p0/maskgit_plus_b32_g0.1",
    "d2_eb/a/p0/maskgit_plus_b32_g1.0",
    "d2_eb/b/p0/maskgit_plus_b32_g0.1",
    "d2_eb/b/p0/maskgit_plus_b8_g0.1",
    "d2_eb/b/p0/maskgit_plus_b8_g1.0",
    "klass/b/p0/BUG_steps_lt_length",
    "klass/b/p1/BUG_s16_b16",
    "klass/b/p1/BUG_s8_b32",
    "klass_alg/b/p0/entropy_b8_s16",
    "pc_entropy/b/p0/b8_s16",
    "d2_wino/b/p0/b8_w0.7_n0.9",
    "less_dream/a/p0_eos5/BUG_eos_in_prompt_llada_s32_c0.75_d0.04_P2_eos",
    "less_dream/b/p0_eos5/BUG_eos_in_prompt_llada_s32_c0.75_d0.04_P2_eos",
    "less_llada/b/p0/BUG_leftover_b32_s8_c0.5_d0.2_P1",
    "less_llada/b/p1/BUG_leftover_b8_s16_c0.5_d0.2_P1",
    "saber/b/p1/BUG_n4_undefined_ties_b8",
}


@pytest.fixture
def one_case(tmp_path):
    """A folder with a single golden case, which a test may change."""

    def make(file, change, folder=GOLDEN):
        for table in folder.glob("denoiser_*.npz"):
            shutil.copy(table, tmp_path)
        case = json.loads((folder / file).read_text().splitlines()[0])
        change(case)
        (tmp_path / file).write_text(json.dumps(case))
        return run(tmp_path)

    return make


def covering(file):
    """Few cases of a file with every value of every knob; for SWD's grids every pair of values.

    `unmask conformance tests/golden/decoders` runs all cases.
    """
    cases = [json.loads(line) for line in file.read_text().splitlines()]
    in_pairs = file.stem in ("swd_detail", "swd_entropy_forms", "swd_main")
    missing = {case["id"]: values_of(case, in_pairs) for case in cases if case["id"] not in DEFECTS}
    chosen = []
    while any(missing.values()):
        chosen.append(max(missing, key=lambda name: len(missing[name])))
        covered = missing.pop(chosen[-1])
        missing = {name: values - covered for name, values in missing.items()}
    by_name = {case["id"]: case for case in cases}
    return [by_name[name] for name in [*chosen, *sorted(DEFECTS & by_name.keys())]]


def values_of(case, in_pairs):
    """The family, the denoiser, the prompt and the knobs of a case, or their pairs."""
    knobs = [f"{name}={value}" for name, value in case["config"].items()]
    values = sorted({*case["id"].split("/")[:3], *knobs})
    return {*combinations(values, 2)} if in_pairs else {*values}


# In float32 one case of each file, by each kernel in turn.
PASSES = [
    *((file, "torch", torch.float64) for file in FILES),
    *(
        pytest.param(file, kernel, torch.float32, marks=pytest.mark.long)
        for kernel, files in (("torch", FILES[::2]), ("native", FILES[1::2]))
        for file in files
    ),
]


@pytest.mark.parametrize(
    ("file", "kernel", "dtype"), PASSES, indirect=["kernel"], ids=lambda of: getattr(of, "stem", of)
)
def test_golden_cases_are_reproduced(file, kernel, dtype):
    cases = covering(file)[: None if dtype == torch.float64 else 1]
    report = Report()
    for case in cases:
        _run_case(case, file.parent, (dtype,), report)
    assert [outcome for outcome in report.outcomes if outcome.status == "failed"] == []
    for outcome in report.outcomes:
        if outcome.status == "known difference":
            assert outcome.case in DEFECTS
            assert outcome.reason
    assert report.count("not offered") == 0
    skipped = report.count("known difference")
    assert report.count("passed") == len(cases) - skipped


def test_every_small_numeric_golden_is_reproduced():
    report = Report()
    check_units(GOLDEN, report)
    check_units(SECOND, report)
    assert [outcome for outcome in report.outcomes if outcome.status == "failed"] == []
    assert report.count("passed") > 200
    longer = [o.case for o in report.outcomes if o.case.startswith("denoiser_ext/")]
    assert len(longer) == 4


def test_cases_that_were_written_from_papers_are_read_and_a_changed_token_fails(one_case):
    def change(case):
        case["steps"][1]["tok"][0] ^= 1

    assert one_case("reference_ce.jsonl", lambda case: None, SECOND).count("passed") == 2
    assert one_case("reference_ce.jsonl", change, SECOND).count("failed") == 2


def test_a_changed_token_fails_and_names_the_step(one_case):
    def change(case):
        case["steps"][3]["tok"][0] ^= 1

    report = one_case("upstream_llada.jsonl", change)
    assert report.count("failed") == 2
    assert "step 3: expected" in report.outcomes[0].reason
    assert list(report.lines())[-1] == "0 passed, 2 failed"


def test_a_changed_score_in_the_details_fails(one_case):
    def change(case):
        case["steps"][2]["kl"][0] += 1e-6

    report = one_case("swd_detail.jsonl", change)
    assert report.count("failed") == 1  # details are compared in float64 only
    assert "step 2: kl of position" in next(o.reason for o in report.outcomes if o.reason)


def test_a_missing_last_step_fails(one_case):
    report = one_case("upstream_fastdllm.jsonl", lambda case: case["steps"].pop())
    assert report.count("failed") == 2


def test_an_extra_useful_step_fails(one_case):
    def change(case):
        case["steps"].insert(1, {"pos": [], "tok": []})

    report = one_case("upstream_fastdllm.jsonl", change)
    assert report.count("failed") == 2


def test_the_default_of_klass_is_the_largest_probability(one_case):
    def change(decoder):
        def apply(case):
            assert case["config"]["block_length"] == case["config"]["gen_length"]
            case["id"], case["config"]["decoder"] = "klass_alg/a/p0/x", decoder

        return apply

    # LLaDA's static decoder takes the largest probability by the same timetable.
    assert one_case("upstream_llada.jsonl", change("klass_alg_default")).count("passed") == 2
    assert one_case("upstream_llada.jsonl", change("klass_alg_topk_margin")).count("failed") == 2
    for name in ("klass_alg_entropy", "klass_alg_random"):
        report = one_case("upstream_llada.jsonl", change(name))
        assert [outcome.status for outcome in report.outcomes] == ["known difference"]


def test_klass_with_fewer_steps_than_tokens_is_a_known_difference(one_case):
    def change(case):
        case["config"]["steps"] //= 2

    (outcome,) = one_case("upstream_klass.jsonl", change).outcomes
    assert outcome.status == "known difference"


def test_the_strategy_max_conf_of_klass_commits_the_surest_of_the_ready_ones():
    case = json.loads((GOLDEN / "upstream_klass.jsonl").read_text().splitlines()[0])
    case["config"]["unmask_strategy"] = "max_conf"
    rule = str(plan_of(case, GOLDEN).settings.rule)
    assert rule.startswith("confidence | klass(")
    assert rule.endswith("| cap(1)")


def test_an_unknown_family_is_named_and_not_counted(one_case):
    def change(case):
        case["id"] = "quantum/b/p0/x"

    report = one_case("upstream_llada.jsonl", change)
    lines = list(report.lines())
    assert lines[-1] == "0 passed, 0 failed"
    assert any("not offered" in line and "quantum" in line for line in lines)


def outcomes(report):
    """The status and the reason of each outcome, each pair once."""
    return {(outcome.status, outcome.reason) for outcome in report.outcomes}


def test_a_setting_that_is_not_known_is_named_if_the_case_differs_and_passes_if_it_agrees(one_case):
    def change(value, spoil=False):
        def apply(case):
            case["config"]["nucleus"] = value
            case["steps"][0]["tok"][0] ^= spoil

        return apply

    file = "upstream_llada.jsonl"
    assert one_case(file, change(0.9)).count("passed") == 2
    named = {("not offered", "this build does not know nucleus")}
    assert outcomes(one_case(file, change(0.9, spoil=True))) == named
    assert one_case(file, change(None, spoil=True)).count("failed") == 2  # None switches it off


def test_a_config_that_cannot_be_read_says_what_is_missing_or_unknown(one_case):
    def without(key):
        return lambda case: case["config"].pop(key)

    def having(**values):
        return lambda case: case["config"].update(values)

    swd, dream, steps = "swd_main.jsonl", "upstream_dream.jsonl", "upstream_llada.jsonl"
    klass = "upstream_klass.jsonl"
    for file, change, words in (
        (steps, without("steps"), "its config has no 'steps'"),
        (swd, having(sel={"policy": "topk"}), "its config has no 'k'"),
        (swd, having(sel={"policy": "vote"}), "policy 'vote' is not known; known: topk"),
        (swd, having(first_step="twice", lam=1), "start must be one of uniform, single, skip"),
        (dream, having(alg="newest"), "alg 'newest' is not known; known: maskgit_plus"),
        (klass, having(unmask_strategy="min_kl"), "unmask_strategy 'min_kl' is not known"),
    ):
        pairs = outcomes(one_case(file, change))
        assert [status for status, reason in pairs if words in reason] == ["not offered"], words


def test_a_case_without_its_steps_or_its_denoiser_fails_and_the_others_run(one_case, tmp_path):
    assert outcomes(one_case("upstream_llada.jsonl", lambda case: case.pop("steps"))) == {
        ("failed", "the case has no 'steps'")
    }
    report = one_case("upstream_dream.jsonl", lambda case: case.update(denoiser="z"))
    assert report.count("failed") == 4
    assert any("denoiser_z.npz" in reason for _, reason in outcomes(report))


def test_cases_are_read_from_files_of_any_name(one_case, tmp_path):
    one_case("upstream_llada.jsonl", lambda case: None)
    (tmp_path / "upstream_llada.jsonl").rename(tmp_path / "later.jsonl")
    (tmp_path / "other.jsonl").write_text('{"text": "no case"}\n{broken\n\n')
    report = run(tmp_path)
    assert (report.count("passed"), report.count("not offered"), report.count("failed")) == (
        2,
        1,
        1,
    )
    assert "other.jsonl/2" in {o.case for o in report.outcomes if o.status == "failed"}


def test_a_folder_without_cases_is_an_error(tmp_path):
    with pytest.raises(UnmaskError, match="has no golden decoder cases"):
        run(tmp_path)


def test_a_case_that_cannot_be_read_is_named_and_the_others_run(tmp_path):
    (tmp_path / "denoiser_a.npz").write_bytes((GOLDEN / "denoiser_a.npz").read_bytes())
    good = (GOLDEN / "upstream_fastdllm.jsonl").read_text().splitlines()[0]
    without, wrong = json.loads(good), json.loads(good)
    del without["config"]["gen_length"]
    wrong["config"]["threshold"] = "high"
    lines = [json.dumps(without), json.dumps(wrong), "[1, 2]", "{", good]
    (tmp_path / "upstream_fastdllm.jsonl").write_text("\n".join(lines))
    report = run(tmp_path, [torch.float64])
    statuses = [outcome.status for outcome in report.outcomes]
    assert statuses == ["not offered"] * 3 + ["failed", "passed"]
    assert "no 'gen_length'" in report.outcomes[0].reason
    assert report.outcomes[3].case == "upstream_fastdllm.jsonl/4"
