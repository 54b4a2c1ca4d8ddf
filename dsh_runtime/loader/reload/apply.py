"""Put changed ``[host]`` settings in force in a running host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsh_runtime.loader.host import tool_settings
from dsh_runtime.loader.model import HostConfig
from dsh_runtime.services.approval.service import ApprovalSettings

if TYPE_CHECKING:
    from dsh_runtime.loader.host import Host


def take_up(host: Host, config: HostConfig) -> None:
    """Have the host behave as ``config`` says, as far as that can change while it runs."""
    machine = host.ctx.tools.machine
    machine.settings = tool_settings(config)
    machine.threads.count = config.host.threads
    host.ctx.fiber.kernel.teardown_timeout = config.host.teardown_timeout
    host.ctx.approval.take_up(ApprovalSettings(config.host.approval, config.host.approval_timeout))
    host.config = config
