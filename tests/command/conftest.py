"""The command in this process, which is quicker than to start it."""

import io
import sys

import pytest

from jointpmf.command.main import main


@pytest.fixture
def inside(capsys, monkeypatch):
    """Run the command in this process, which is quicker; return its code, stdout and stderr."""
    monkeypatch.setenv("COLUMNS", "100")

    def call(*arguments, stdin=b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        return ended.value.code, *capsys.readouterr()

    return call
