"""What authors of plugins test with. ``pip install dsh-runtime[testing]`` gives any wheel the pytest fixtures, too.

A host in a test is a real one: the kit replaces what stands around it (the person who approves, the clock, the folder
of the log), and nothing of it.

Layering, lowest first: ``calls``, ``clock``, ``differences``, ``fakes``; ``stories``; ``asserts``, ``recorder``;
``trial``; ``arguments``; ``checks``; ``conformance``. The fixtures stand in ``dsh_runtime.pytest_plugin``, which pytest
imports in every run.
"""

from dsh_runtime.testing.arguments import arguments_for
from dsh_runtime.testing.asserts import assert_denied, assert_failed, assert_ok, assert_told, tell
from dsh_runtime.testing.calls import Call, call
from dsh_runtime.testing.clock import VirtualClock
from dsh_runtime.testing.conformance import PluginChecks, check_plugin
from dsh_runtime.testing.fakes import Denial, FakeTool, ScriptedApproval, provide
from dsh_runtime.testing.recorder import Heard, Recorder
from dsh_runtime.testing.trial import Running, Trial, open_trial

__all__ = [
    "Call",
    "Denial",
    "FakeTool",
    "Heard",
    "PluginChecks",
    "Recorder",
    "Running",
    "ScriptedApproval",
    "Trial",
    "VirtualClock",
    "arguments_for",
    "assert_denied",
    "assert_failed",
    "assert_ok",
    "assert_told",
    "call",
    "check_plugin",
    "open_trial",
    "provide",
    "tell",
]
