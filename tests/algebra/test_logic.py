"""Any, all and the bits of integers: laws, answers, types."""

from __future__ import annotations

import functools
import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sash.algebra import logic
from sash.errors import DataError
from tests.algebra.bracketing import (
    answer,
    both_forms,
    case,
    compiled_answer,
    needs_machine_code,
    require_laws,
    same,
    seeds,
    slid,
)

truths = st.booleans()
bytes_ = st.integers(0, 255)
int64s = st.integers(-(2**63), 2**63 - 1)
uint64s = st.integers(0, 2**64 - 1)

TRUTHS = {logic.any: any, logic.all: all}
BITS = {logic.bit_or: operator.or_, logic.bit_and: operator.and_, logic.bit_xor: operator.xor}

CASES = [
    *(case(aggregate(), dtype, truths) for aggregate in TRUTHS for dtype in (None, "?")),
    *(case(aggregate(), None, st.integers()) for aggregate in BITS),
    *(case(aggregate(), "u1", bytes_) for aggregate in BITS),
    *(case(aggregate(), "i8", int64s) for aggregate in BITS),
    *(case(aggregate(), "u8", uint64s) for aggregate in BITS),
]


def truth_about(case, rows):
    values = [row[0] for row in rows]
    for aggregate, wanted in TRUTHS.items():
        if aggregate.__name__ == case.aggregate.name:
            return wanted(values)
    return functools.reduce({f.__name__: op for f, op in BITS.items()}[case.aggregate.name], values)


@pytest.mark.parametrize("case", CASES)
@given(data=st.data(), seed=seeds)
def test_the_laws_hold(case, data, seed):
    require_laws(case.monoid, data.draw(case.rows(least=3)), seed)


@pytest.mark.parametrize("case", CASES)
@given(data=st.data(), seed=seeds)
def test_the_answer_is_that_of_a_fold(case, data, seed):
    rows = data.draw(case.rows())
    assert answer(case.monoid, rows, seed) == truth_about(case, rows)


@needs_machine_code
@pytest.mark.parametrize("case", [each for each in CASES if each.values[0].monoid.is_compilable])
@given(data=st.data(), seed=seeds)
def test_machine_code_answers_the_same_in_any_bracketing(case, data, seed):
    rows = data.draw(case.rows())
    found = compiled_answer(case.monoid, rows, case.dtypes, seed)
    assert same(found, truth_about(case, rows))
    assert found.dtype == case.dtypes[0]


@both_forms
def test_the_engine_answers_windows(compiled):
    rows = [(True,), (False,), (False,), (None,), (True,)]
    assert slid(logic.any(), rows, 2, dtype="?", compiled=compiled) == [True, True, False, False, True]
    assert slid(logic.all(), rows, 2, dtype="?", compiled=compiled) == [True, False, False, False, True]
    assert slid(logic.bit_xor(), [(5,), (3,), (6,)], 2, dtype="i4", compiled=compiled) == [5, 6, 5]


@pytest.mark.parametrize("aggregate", TRUTHS, ids=lambda a: a.__name__)
@pytest.mark.parametrize("dtype", ["i8", "f8", "U1"])
def test_truth_is_not_guessed_from_other_types(aggregate, dtype):
    with pytest.raises(DataError, match="takes booleans"):
        aggregate().bind(np.dtype(dtype))


@pytest.mark.parametrize("aggregate", BITS, ids=lambda a: a.__name__)
@pytest.mark.parametrize("dtype", ["?", "f8", "U1"])
def test_only_integers_have_bits(aggregate, dtype):
    with pytest.raises(DataError, match=r"takes integers.*any and all"):
        aggregate().bind(np.dtype(dtype))


def test_the_same_declaration_gives_the_same_monoid():
    for aggregate in (*TRUTHS, *BITS):
        assert aggregate("x") == aggregate("x")
        assert aggregate("x").bind(None) is aggregate("y").bind(None)
