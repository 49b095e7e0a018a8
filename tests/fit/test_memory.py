"""How much memory there is: what the system says, in a container too."""

from pathlib import Path

import numpy as np
import pytest

from jointpmf.fit import memory


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only Linux says")
def test_what_is_held_counts():
    before = memory.used_bytes()
    held = np.ones(10**7)
    assert memory.used_bytes() - before > 0.5 * held.nbytes


def test_a_container_may_have_less(tmp_path, monkeypatch):
    assert memory._free_in_container(str(tmp_path)) is None
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("400\n")
    assert memory._free_in_container(str(tmp_path)) is None
    (tmp_path / "memory.max").write_text("1000\n")
    assert memory._free_in_container(str(tmp_path)) == 600
    monkeypatch.setattr(memory, "_free_in_container", lambda: 600)
    assert memory.available_bytes() == 600
    monkeypatch.setattr(memory, "_free_in_machine", lambda: None)
    monkeypatch.setattr(memory, "_free_in_container", lambda: None)
    assert memory.available_bytes() is None
