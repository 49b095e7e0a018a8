"""Published maxima on real data, where the folder `JOINTPMF_DATA` has it."""

import os

import pytest
from benchmarks.latent_class import PUBLISHED, read

import jointpmf as jp

FOLDER = os.environ.get("JOINTPMF_DATA")
pytestmark = pytest.mark.skipif(not FOLDER, reason="JOINTPMF_DATA names no folder with the data")


@pytest.mark.parametrize(("name", "rank", "published"), PUBLISHED)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_maximum_is_the_published_one_to_its_digits(name, rank, published, seed):
    table = read(FOLDER, name).drop_nulls()
    solution = jp.fit_rows(table, rank, random_state=seed)
    digits = len(published.split(".")[1])
    found = jp.summary(solution.pmf, table).log_likelihood
    assert round(found, digits) == float(published)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_rows_with_missing_answers_are_used(seed):
    table = read(FOLDER, "election")
    solution = jp.fit_rows(table, 3, random_state=seed)
    assert jp.summary(solution.pmf, table).log_likelihood >= -21311.54
