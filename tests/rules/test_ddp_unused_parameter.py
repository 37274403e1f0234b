"""The error that a wrapper raises is explained by the parameters it lists, at the line where something can be done."""

from dataclasses import replace

from tests.rules.builders import check, evidence, info, line, optimizer, parameter, raised, untouched
from tests.rules.rank_builders import replica
from whygrad.model import PathEnd

SLUG = "ddp-unused-parameter"
MESSAGE = "Expected to have finished reduction ...\nParameter indices which did not receive grad for rank 0: 1 2\n"


def crashed(*parameters, message=MESSAGE, **fields):
    error = replace(raised(message, reason="ddp-unused"), tensor=parameters[1].name)
    wrapper = replica(parameters=tuple(p.id for p in parameters))
    run = evidence(parameters, (optimizer(),), info=info(raised=error), replicas=(wrapper,), **fields)
    return check(SLUG, run)


def test_a_layer_that_is_never_used_is_placed_where_it_is_made():
    body = parameter("body.weight", 4)
    unused = [untouched(name, 5 + n, made_at=line(7), path=PathEnd.UNUSED) for n, name in enumerate(("a.w", "a.b"))]

    (finding,) = crashed(body, *unused)

    assert finding.tensors == ("a.w", "a.b")
    assert finding.place == line(7)
    assert finding.also == (line(12), line(25))
    assert "`a.w` (+1)" in finding.message
    assert finding.evidence["missing"] == 2


def test_a_layer_whose_result_is_ignored_is_placed_at_its_last_use():
    ignored = untouched("a.w", 5, path=PathEnd.IGNORED, ends_at=line(17))

    (finding,) = crashed(parameter("body.weight", 4), ignored)

    assert finding.place == line(17)


def test_layers_used_by_turns_are_placed_where_the_model_is_wrapped():
    (finding,) = crashed(parameter("body.weight", 4), parameter("a.w", 5, gradient_steps=3))

    assert finding.place == line(12)
    assert "find_unused_parameters=True" in finding.fix


def test_without_the_list_the_tensor_of_the_error_is_named():
    (finding,) = crashed(parameter("body.weight", 4), untouched("a.w", 5), message="Expected to have finished")

    assert finding.tensors == ("a.w",)


def test_other_errors_are_silence():
    assert check(SLUG, evidence(info=info(raised=raised("CUDA out of memory")))) == []
