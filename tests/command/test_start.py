"""Ctrl-C at any moment of a command, also while it is still imported: a quiet end."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import jointpmf as jp
from jointpmf.command import interrupts, start
from jointpmf.command.main import INTERRUPTED
from support.imports import reached

COMMAND = str(Path(sys.executable).with_name("jointpmf"))
RUN = [sys.executable, "-c", "from jointpmf.command.start import main; main()"]
SAYS_IT_BEGAN = """
import sys

class Says:
    def find_spec(self, name, *_):
        if name == "jointpmf.command.interrupts":  # the first import that is guarded
            sys.stdout.write(".")
            sys.stdout.flush()

sys.meta_path.insert(0, Says())
"""
UGLY = re.compile("Traceback|Exception ignored|Error|unexpected")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("start") / "m.safetensors"
    jp.random_pmf(jp.Domain.of_sizes([3, 3]), 2, 0).save(path)
    return path


def begun(*arguments):
    """Start the command, and return when Ctrl-C is guarded, and all else yet to import.

    What Python does before that, it also shows.
    """
    process = subprocess.Popen(
        [RUN[0], "-c", SAYS_IT_BEGAN + RUN[2], *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout.read(1) == b"."
    return process


def ended(process):
    """Return the exit code and what was said, which is not ugly."""
    _, said = (text.decode() for text in process.communicate(timeout=60))
    assert not UGLY.search(said), said
    assert said.count("\n") <= 1, said
    return process.returncode, said


def test_ctrl_c_at_any_moment_is_a_quiet_end(model):
    arguments = ["query", model, "--of", "x1"]
    before = time.monotonic()
    assert ended(begun(*arguments))[0] == 0
    whole = time.monotonic() - before
    codes = []
    for moment in range(10):
        process = begun(*arguments)
        time.sleep(whole * moment / 10)
        process.send_signal(signal.SIGINT)
        if moment % 2:
            process.send_signal(signal.SIGINT)
        codes.append(ended(process)[0])
    assert set(codes) <= {0, INTERRUPTED}
    assert codes.count(INTERRUPTED) > 2


def test_a_background_job_goes_on(model):
    ignoring = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    command = [RUN[0], "-c", SAYS_IT_BEGAN + ignoring + RUN[2], "query", str(model), "--of", "x1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.read(1)
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    assert ended(process)[0] == 0


def test_the_exit_code_is_the_same_early_and_late():
    assert start._INTERRUPTED == INTERRUPTED


def test_the_installed_command_begins_here():
    assert "from jointpmf.command.start import main" in Path(COMMAND).read_text()


def test_nothing_is_imported_before_ctrl_c_is_guarded():
    code = (
        "import sys; before = set(sys.modules); import jointpmf.command.start; "
        "print(*set(sys.modules) - before)"
    )
    new = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    own = {"jointpmf", "jointpmf.command", "jointpmf.command.start", "__future__"}
    assert set(new.stdout.split()) <= own


def test_whatever_is_public_imports_what_keeps_logs_from_being_printed():
    modules = reached(only_at_module_level=True)

    def all_of(module):
        found, waiting = set(), [module]
        while waiting:
            found.add(one := waiting.pop())
            waiting += modules[one] - found
        return found

    public = {*jp._HOME.values(), *jp._MODULES.values()}
    assert [name for name in sorted(public) if "errors" not in all_of(name)] == []


class TestBetweenImports:
    @pytest.fixture(autouse=True)
    def _as_before(self, monkeypatch):
        monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
        before = signal.getsignal(signal.SIGINT)
        yield
        signal.signal(signal.SIGINT, before)

    def test_ctrl_c_waits_for_the_end_of_an_import(self, tmp_path, monkeypatch):
        (tmp_path / "long_to_import.py").write_text(
            "import signal\nsignal.raise_signal(signal.SIGINT)\nis_whole = True\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        interrupts.between_imports(start.main.__code__)

        def use():
            import long_to_import

            assert long_to_import.is_whole
            time.sleep(10)

        with pytest.raises(KeyboardInterrupt):
            use()
        assert sys.modules.pop("long_to_import").is_whole

    def test_what_has_imported_the_command_is_not_waited_for(self):
        frame = SimpleNamespace(
            f_code=start.main.__code__,
            f_back=SimpleNamespace(f_code=SimpleNamespace(co_filename="<frozen importlib>")),
        )
        assert not interrupts._is_importing(frame, start.main.__code__)
        assert interrupts._is_importing(frame.f_back, start.main.__code__)

    def test_ctrl_c_elsewhere_interrupts_at_once(self):
        interrupts.between_imports(start.main.__code__)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)

    def test_ctrl_c_that_python_has_lost_comes_again(self, capfd):
        class Fleeting:
            def __del__(self):
                signal.raise_signal(signal.SIGINT)

        interrupts.between_imports(start.main.__code__)
        Fleeting()
        with pytest.raises(KeyboardInterrupt):
            time.sleep(10)
        assert capfd.readouterr().err == ""

    def test_what_else_python_has_lost_is_printed(self, capfd):
        class Fleeting:
            def __del__(self):
                raise ValueError("lost")

        interrupts.between_imports(start.main.__code__)
        Fleeting()
        assert "ValueError: lost" in capfd.readouterr().err
