"""Files that appear whole or not at all, however many write them at a time."""

import os
import stat
import subprocess
import sys
import threading

import pytest

import jointpmf as jp
from jointpmf.output import atomic_output

PMFS = [jp.random_pmf(jp.Domain.of_sizes([50, 40]), rank=rank, random_state=0) for rank in (1, 9)]


def test_several_threads_save_to_one_path_and_every_read_is_whole(tmp_path):
    path = tmp_path / "m.safetensors"
    PMFS[0].save(path)
    errors, begin = [], threading.Barrier(5)

    def often(work):
        begin.wait()
        try:
            for _ in range(15):
                work()
        except BaseException as error:
            errors.append(error)

    def read():
        assert jp.load(path).rank in (1, 9)

    work = [lambda pmf=pmf: pmf.save(path) for pmf in (*PMFS, *PMFS)] + [read]
    threads = [threading.Thread(target=often, args=[one]) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert os.listdir(tmp_path) == ["m.safetensors"]


def test_several_processes_save_to_one_path(tmp_path):
    code = (
        "import sys; from jointpmf.output import atomic_output\n"
        "for _ in range(40):\n"
        "    with atomic_output(sys.argv[1]) as file:\n"
        "        file.write(sys.argv[2].encode() * 9999)\n"
    )
    path = tmp_path / "shared"
    started = [subprocess.Popen([sys.executable, "-c", code, str(path), letter]) for letter in "ab"]
    assert [process.wait() for process in started] == [0, 0]
    assert path.read_bytes() in (b"a" * 9999, b"b" * 9999)
    assert os.listdir(tmp_path) == ["shared"]


def test_one_thread_twice_at_a_time(tmp_path):
    path = tmp_path / "nested"
    with atomic_output(path) as outer, atomic_output(path) as inner:
        outer.write(b"outer")
        inner.write(b"inner")
    assert path.read_bytes() == b"outer"
    assert os.listdir(tmp_path) == ["nested"]


def test_a_name_as_long_as_the_system_allows(tmp_path):
    path = tmp_path / ("n" * 255)
    with atomic_output(path) as file:
        file.write(b"whole")
    assert path.read_bytes() == b"whole"


def test_what_is_written_can_be_read_by_those_who_may_read_new_files(tmp_path):
    with atomic_output(tmp_path / "new"):
        pass
    (tmp_path / "plain").touch()
    modes = {stat.S_IMODE(os.stat(tmp_path / name).st_mode) for name in ("new", "plain")}
    assert len(modes) == 1


def test_what_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "kept"
    path.write_bytes(b"old")

    def fail():
        with atomic_output(path) as file:
            file.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["kept"]


def test_what_is_replaced_keeps_who_may_read_it(tmp_path):
    path = tmp_path / "private.csv"
    path.write_text("a")
    path.chmod(0o600)
    with atomic_output(path) as file:
        file.write(b"b")
    assert path.read_text() == "b"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_a_shell_gives_for_a_pipe_is_written_to():
    read, write = os.pipe()  # its link in /dev/fd leads to no name that could be replaced
    with atomic_output(f"/dev/fd/{write}") as file:
        file.write(b"42")
    os.close(write)
    with open(read, "rb") as pipe:
        assert pipe.read() == b"42"
