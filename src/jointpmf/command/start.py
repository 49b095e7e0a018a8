"""Where the command begins: Ctrl-C ends it quietly while the rest of it is still imported.

Nothing but what Python itself has already imported comes before the guard.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any
else:
    import _signal as signal  # the other would first import what makes enumerations

_INTERRUPTED = 130
"""What `main.INTERRUPTED` is; that file is not imported yet."""


def main() -> None:
    """Run the command of the command line; a shell's background jobs still ignore Ctrl-C."""
    is_asked = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_asked:
        signal.signal(signal.SIGINT, _leave)
    from jointpmf.command import interrupts
    from jointpmf.command.main import main as run

    if is_asked:
        interrupts.between_imports(main.__code__)
    try:
        run()
    except KeyboardInterrupt:  # it came while the command was about to end
        _leave()


def _leave(*_: Any) -> None:
    """End here and now: nothing is open, and Python would show what it was importing."""
    os._exit(_INTERRUPTED)
