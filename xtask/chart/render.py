"""Prints one replica of the rendered chart as JSON: what Kubernetes starts, with resolved variables."""

import argparse
import json
import sys
from pathlib import Path

# No bytecode files next to the sources.
sys.dont_write_bytecode = True

from release import Release, RenderError, read_values, replica  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--values", action="append", required=True, help="a file of values; later files win")
    parser.add_argument("--secrets", required=True, help='a JSON file: {"SECRET": {"KEY": "VALUE"}}')
    parser.add_argument("--release", default="team")
    parser.add_argument("--namespace", default="tools")
    parser.add_argument("--ordinal", type=int, default=0, help="the number of the replica")
    options = parser.parse_args()
    try:
        release = Release(read_values(options.values), options.release, options.namespace)
        secrets = json.loads(Path(options.secrets).read_text())
        print(json.dumps(replica(release, options.ordinal, secrets), indent=2))
    except RenderError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
