"""What switched grad mode off is named, and the line that was computed under it."""

from tests.rules.builders import line, parameter
from tests.rules.path_builders import cut, found, lost, stopped
from whygrad.model import CutKind, Severity

SLUG = "no-grad-region"


def off(parameter=1, mode="torch.no_grad()", **fields):
    return cut(parameter, CutKind.NO_GRAD, "conv2d", **{"number": 33, "mode": mode, "mode_at": line(31), **fields})


def test_the_place_is_the_switch_and_the_computed_line_is_named_too():
    (finding,) = found(SLUG, [lost("mix.weight", 1), lost("mix.bias", 2)], [off(1), off(2)])

    assert finding.severity is Severity.ERROR
    assert finding.tensors == ("mix.weight", "mix.bias")
    assert finding.place == line(31)
    assert finding.also == (line(33),)
    assert finding.message.endswith("`conv2d` at train.py:33 ran under `torch.no_grad()` at train.py:31")
    assert finding.fix == "Take what is to learn out of `torch.no_grad()`"


def test_lines_under_one_switch_are_one_finding():
    given = [off(1), off(2, number=34, place=line(34))]

    (finding,) = found(SLUG, [lost("a", 1), lost("b", 2)], given)

    assert finding.place == line(31)
    assert finding.also == (line(33), line(34))


def test_a_switch_that_was_not_seen_leaves_the_computed_line():
    (finding,) = found(SLUG, [lost("a", 1)], [off(mode="", mode_at=None)])

    assert finding.place == line(33)
    assert finding.message.endswith("`conv2d` at train.py:33 ran while grad mode was off")


def test_a_switch_for_the_whole_process_has_a_fix_of_its_own():
    (finding,) = found(SLUG, [lost("a", 1)], [off(mode="torch.set_grad_enabled(False)")])

    assert "with torch.no_grad():" in finding.fix


def late(operation="set_grad_enabled", **fields):
    learned = parameter("fc.weight", 1)
    known = {"tensor": "loss", "operation": operation, "changed_at": line(12), **fields}
    return found(SLUG, [learned], info=stopped("does-not-require-grad", **known))


def test_a_switch_that_was_thrown_after_the_traced_steps_is_found_at_the_end():
    (finding,) = late()

    assert finding.place == line(12)
    assert finding.also == (line(60),)
    assert finding.message == (
        "grad mode was off when `loss` was computed: `set_grad_enabled` at train.py:12 switched it off"
    )


def test_a_loss_that_has_no_gradient_for_another_reason_is_no_switch():
    assert late("add") == []
    assert late("") == []


def test_a_switch_that_the_traced_steps_saw_is_said_once():
    facts = stopped("does-not-require-grad", tensor="loss", operation="no_grad", changed_at=line(31))

    assert len(found(SLUG, [lost("mix.weight", 1)], [off()], info=facts)) == 1


def test_a_reentrant_checkpoint_is_another_rules_case():
    by_mode = off(mode="CheckpointFunction inside checkpoint")
    by_function = cut(1, CutKind.CUSTOM, "CheckpointFunction", 31)

    for checkpoint in (by_mode, by_function):
        assert found(SLUG, [lost("a", 1)], [checkpoint]) == []
        assert found("custom-backward", [lost("a", 1)], [checkpoint]) == []
        (finding,) = found("reentrant-checkpoint", [lost("a", 1)], [checkpoint])
        assert finding.place == line(31)
        assert finding.message.endswith("no input of the reentrant checkpoint at train.py:31 requires grad")
        assert "use_reentrant=False" in finding.fix


def test_a_region_without_gradients_is_no_checkpoint():
    assert found("reentrant-checkpoint", [lost("a", 1)], [off()]) == []


def test_an_inference_tensor_leads_to_the_line_that_made_it():
    facts = stopped("inference-tensor", tensor="features", made_at=line(12))

    (finding,) = found(SLUG, info=facts)

    assert finding.place == line(12)
    assert finding.also == (line(60),)
    assert finding.tensors == ("features",)
    assert finding.message == (
        "`features` was made under inference_mode at train.py:12, so backward cannot use it at train.py:60"
    )
