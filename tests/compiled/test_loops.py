"""Each loop in vector registers against its plain twin, and the choice between them."""

import inspect
import subprocess
import sys
from os import environ

import numpy as np
import pytest

from jointpmf.compiled import loops, panels
from jointpmf.compiled.jit import LANES, compiled
from jointpmf.compiled.panels import lanes_of, padded_width, panel_width

WIDTHS = [4, 32]


@compiled
def _multiply(out, row, factors, prior, first, cells, begin, end, lanes):
    return loops.multiply_row(out, row, factors, prior, first, cells, begin, end, lanes)


@compiled
def _multiply_long(out, exponents, row, factors, prior, first, cells, begin, end, step, lanes):
    loops.multiply_long_row(
        out, exponents, row, factors, prior, first, cells, begin, end, step, lanes
    )


@compiled
def _add(out, prior, rows, row, scale, first, cells, begin, end, lanes):
    loops.add_row(out, prior, rows, row, scale, first, cells, begin, end, lanes)


@compiled
def _add_rows(out, row, rows, listed, begin, end, lanes):
    loops.add_rows(out, row, rows, listed, begin, end, lanes)


@compiled
def _add_dots(out, row, left, scale, right, lanes):
    loops.add_dots(out, row, left, scale, right, lanes)


@compiled
def _fetch(rows, row, lanes):
    loops.fetch_row(rows, row, lanes)


@compiled
def _add_sparse(out, row, right, first, columns, values, scale, begin, end, lanes):
    loops.add_sparse_row(out, row, right, first, columns, values, scale, begin, end, lanes)


class Problem:
    """Arrays that are wider than a pass, so that a pass begins in their middle and ends in it."""

    def __init__(self, width, cell_dtype=np.uint16):
        self.width, self.first = width, 4
        self.generator = np.random.default_rng(width)
        self.cells = self.generator.integers(0, 9, 20).astype(cell_dtype)

    def numbers(self, rows=10):
        return self.generator.random((rows, self.width + 8))

    def both(self, call, *starts):
        """Return what a call leaves in copies of some arrays, in vector registers and plain."""
        found = []
        for is_plain in (False, True):
            arrays = [start.copy() for start in starts]
            result = call(*arrays, lanes_of(self.width, plain=is_plain))
            found.append((*arrays, np.array(0.0 if result is None else result)))
        return found

    def assert_same(self, call, *starts):
        """Compare both forms, and that columns outside the pass are as they were."""
        for one, other, start in zip(*self.both(call, *starts), (*starts, None), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-13)
            if start is not None:
                assert not np.array_equal(one, start)
                np.testing.assert_array_equal(one[:, : self.first], start[:, : self.first])
                np.testing.assert_array_equal(one[:, -4:], start[:, -4:])


@pytest.mark.parametrize(("width", "dtype"), [(4, np.uint32), (32, np.uint16)])
def test_multiply_row(width, dtype):
    problem = Problem(width, dtype)
    factors = problem.numbers()

    def call(out, lanes):
        return _multiply(out, 1, factors, 9, problem.first, problem.cells, 2, 15, lanes)

    problem.assert_same(call, problem.numbers(3))
    (out, total), _ = problem.both(call, problem.numbers(3))
    columns = slice(4, 4 + width)
    expected = factors[9, columns] * factors[problem.cells[2:15], columns].prod(axis=0)
    np.testing.assert_allclose(out[1, columns], expected, rtol=1e-13)
    assert total == pytest.approx(expected.sum())


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("step", [1, 3, 50])
def test_multiply_long_row(width, step):
    problem = Problem(width)
    factors = problem.numbers() * 1e-5
    factors[2, 5] = 0.0
    problem.cells[4] = 2

    def call(out, exponents, lanes):
        _multiply_long(
            out, exponents, 1, factors, 9, problem.first, problem.cells, 2, 15, step, lanes
        )

    starts = problem.numbers(3), np.zeros((3, width + 8), np.int64)
    (out, exponents, _), (plain_out, plain_exponents, _) = problem.both(call, *starts)
    np.testing.assert_allclose(out, plain_out, rtol=1e-13)
    possible = out > 0
    assert not possible[1, 5]
    assert possible[1, 6 : 4 + width].all()
    np.testing.assert_array_equal(exponents[possible], plain_exponents[possible])
    columns = slice(4, 4 + width)
    expected = factors[9, columns] * factors[problem.cells[2:15], columns].prod(axis=0)
    np.testing.assert_allclose(np.ldexp(out, exponents)[1, columns], expected, rtol=1e-13)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("prior", [-1, 9])
def test_add_row(width, prior):
    problem = Problem(width)
    rows = problem.numbers(3)
    problem.assert_same(
        lambda out, lanes: _add(out, prior, rows, 2, 0.3, 4, problem.cells, 2, 15, lanes),
        problem.numbers(),
    )


@pytest.mark.parametrize("plain", [False, True])
def test_what_is_fetched_stays_as_it_is(plain):
    rows = np.random.default_rng(0).random((10, 16))
    before = rows.copy()
    _fetch(rows, 3, lanes_of(16, plain=plain))
    np.testing.assert_array_equal(rows, before)


@pytest.mark.parametrize("width", WIDTHS)
def test_loops_over_whole_rows(width):
    generator = np.random.default_rng(width)
    rows, start = generator.random((10, width)), generator.random((3, width))
    listed = generator.integers(0, 10, 20).astype(np.uint16)
    for is_plain in (False, True):
        out, lanes = start.copy(), lanes_of(width, plain=is_plain)
        _add_rows(out, 1, rows, listed, 2, 15, lanes)
        expected = start.copy()
        for row in listed[2:15]:
            expected[1] += rows[row]
        np.testing.assert_array_equal(out, expected)
        out = np.ones((10, 3 * LANES))
        _add_dots(out, 3, rows, 0.5, start, lanes)
        sums = out.reshape(10, 3, LANES).sum(axis=2)
        np.testing.assert_allclose(sums[3], LANES + 0.5 * start @ rows[3], rtol=1e-14)
        np.testing.assert_array_equal(np.delete(sums, 3, axis=0), LANES)


@pytest.mark.parametrize(("width", "dtype"), [(4, np.float64), (32, np.uint8)])
def test_add_sparse_row(width, dtype):
    problem = Problem(width)
    right = problem.numbers()
    values = problem.generator.integers(0, 200, 20).astype(dtype)
    problem.assert_same(
        lambda out, lanes: _add_sparse(out, 1, right, 4, problem.cells, values, 0.3, 2, 15, lanes),
        problem.numbers(3),
    )


class TestChoice:
    """Which form is used."""

    def test_a_width_is_a_type_of_its_own(self):
        assert lanes_of(8, plain=False) == (0,) * 8
        assert lanes_of(8, plain=True) == (False,) * 8
        assert {type(lane) for lane in lanes_of(8, plain=True)} == {bool}

    @pytest.mark.parametrize("count", range(1, 100))
    def test_panels_cover_a_padded_width(self, count):
        width = padded_width(count)
        assert count <= width < count + 4
        assert width % panel_width(count) == 0
        firsts = [first for first, _ in panels.panels(width)]
        sizes = [len(lanes) for _, lanes in panels.panels(width)]
        assert firsts == [0, *np.cumsum(sizes)[:-1]]
        assert sum(sizes) == width

    def test_here_all_loops_compile(self):
        if environ.get("JOINTPMF_PLAIN") != "1":
            assert not panels.plain_is_needed()

    @pytest.mark.parametrize(
        ("change", "is_needed"),
        [
            ("", False),
            ("import os; os.environ['JOINTPMF_PLAIN'] = '1'", True),
            ("from jointpmf.compiled import vectors; del vectors.add_sparse_row", True),
            ("import sys; sys.modules['jointpmf.compiled.vectors'] = None", True),
        ],
    )
    def test_plain_loops_are_used_where_the_others_do_not_compile(
        self, change, is_needed, tmp_path
    ):
        said = run(
            f"{change}\nfrom jointpmf.compiled.panels import lanes_of\nprint(lanes_of(4))",
            NUMBA_CACHE_DIR=str(tmp_path),  # what has been compiled before would still run
        )
        assert said.strip() == str(lanes_of(4, plain=is_needed))

    def test_a_fit_ends_in_the_same_place(self):
        other = "0" if panels.plain_is_needed() else "1"  # than in this process
        code = f"{inspect.getsource(cells_of_a_fit)}\nprint(*cells_of_a_fit())"
        found = np.array(run(code, JOINTPMF_PLAIN=other).split(), float)
        np.testing.assert_allclose(found, cells_of_a_fit(), rtol=1e-10)


def cells_of_a_fit():
    """Return a fitted table; a process of its own runs these lines too."""
    import jointpmf as jp

    truth = jp.random_pmf(jp.Domain.of_sizes([3] * 4), 2, 0)
    rows = jp.Codes(truth.domain, truth.sample(200, random_state=0, backend="codes"))
    search = jp.Search(start=jp.random_pmf(truth.domain, 2, 1))
    return jp.fit_rows(rows, 2, search=search, max_iter=5).pmf.table().ravel()


def run(code, **variables):
    """Run Python code in a process of its own, with these environment variables."""
    kept = {name: value for name, value in environ.items() if name != "JOINTPMF_PLAIN"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=kept | variables
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
