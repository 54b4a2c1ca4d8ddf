"""``python -m dsh_runtime`` is ``dsh-run``."""

import sys

from dsh_runtime.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
