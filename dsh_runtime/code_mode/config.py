"""What one program may ask of the pipeline."""

from __future__ import annotations

from attrs import field, frozen
from attrs.validators import ge


@frozen(kw_only=True)
class CodeModeConfig:
    """A program may make ``sub_calls`` calls in all, of which ``max_parallel`` overlap.

    At most ``max_media`` images and pieces of audio from its sub-calls are shown to the model.
    """

    sub_calls: int = field(default=1_000, validator=ge(0))
    max_parallel: int = field(default=10, validator=ge(1))
    max_media: int = field(default=20, validator=ge(0))
