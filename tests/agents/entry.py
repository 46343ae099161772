"""Runs the command of the agent and, at its end, prints the modules that the process has loaded."""

import sys

from leadline.daemon.cli import main

if __name__ == "__main__":
    status = main(["run", "--role", "agent"], standalone_mode=False)
    sys.stdout.write("\n".join(sys.modules))
    sys.exit(status)
