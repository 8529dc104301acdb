"""Slopes, ratios and crossings of curves that are known."""

import math

import pytest

from bench.experiments.contract import Size, point
from bench.experiments.fitting import Curves, line, number

NS = [2**k for k in range(0, 21, 2)]
COSTS = {
    "constant": lambda n: 7.0,
    "logarithmic": lambda n: 3.0 + 2.0 * math.log2(n),
    "root": lambda n: 4.0 * n**0.5,
    "linear": lambda n: 0.5 * n,
}


@pytest.fixture
def curves():
    return Curves(point("p", name, n, (cost(n), 0.1)) for name, cost in COSTS.items() for n in NS)


@pytest.mark.parametrize(("name", "slope"), [("constant", 0.0), ("root", 0.5), ("linear", 1.0)])
def test_the_slope_of_a_power_is_its_exponent(curves, name, slope):
    assert curves.slope("p", name).slope == pytest.approx(slope, abs=1e-3)
    assert curves.slope("p", name).error < 1e-3


def test_a_logarithm_is_a_line_over_the_logarithm_and_no_power(curves):
    fit = curves.log_line("p", "logarithmic")
    assert (fit.slope, fit.start, fit.explained) == pytest.approx((2.0, 3.0, 1.0), abs=1e-2)
    assert curves.slope("p", "logarithmic").error > 0.01
    assert curves.log_line("p", "linear").explained < 0.6


def test_the_error_of_a_slope_is_that_of_least_squares():
    fit = line([0, 1, 2, 3], [0, 1, 2, 4])
    assert (fit.slope, fit.start) == pytest.approx((1.3, -0.2))
    assert fit.error == pytest.approx(math.sqrt(0.3 / 2 / 5))


def test_too_few_points_have_no_slope(curves):
    fit = curves.slope("p", "linear", 2**20)
    assert str(fit) == "(too few points)"
    assert not fit.slope > 0


def test_a_ratio_is_over_common_points_and_shows_the_noise_of_both(curves):
    found = curves.ratio("p", "linear", "constant", 16, 1024)
    assert (found.low, found.high, found.noise) == pytest.approx((8 / 7, 512 / 7, 0.2), rel=1e-3)
    assert str(curves.ratio("p", "linear", "nothing")) == "(no points)"


def test_curves_cross_between_their_points(curves):
    assert curves.crossing("p", "constant", "linear") == pytest.approx(14, rel=0.01)
    assert curves.crossing("p", "constant", "linear", factor=10) == pytest.approx(140, rel=0.01)
    assert curves.crossing("p", "linear", "constant") is None
    assert curves.crossing("p", "constant", "logarithmic", factor=0.1) == 1


def test_numbers_have_three_digits():
    assert [number(each) for each in (0.12345, 12.345, 123.45, 12345.6)] == ["0.123", "12.3", "123", "12,346"]


def test_sizes_give_their_choice_and_smaller_ones_the_last():
    assert [size.of(5, 3) for size in Size] == [5, 3, 3]
    assert Size.FULL.powers(6, 4, 2) == [1, 4, 16, 64]
    assert Size.QUICK.powers(6, 5, 2) == [1, 16, 32]
