"""The agent as its command runs it; when it was stopped it says which modules it had loaded."""

import sys

from leadline.daemon.cli import main

if __name__ == "__main__":
    status = main(["run", "--role", "agent"], standalone_mode=False)
    sys.stdout.write("\n".join(sys.modules))
    sys.exit(status)
