from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from sqlalchemy import make_url

from tests.matrix.comparison import Expected, Matrix, compare
from tests.servers import PINNED, SERVERS

ROOT = Path(__file__).resolve().parents[2]
TESTS_FAILED = 3
USUAL = [name for name in SERVERS if name not in PINNED]


def main() -> int:
    """Run the suite, say how it went, compare with the list; 1 if a combination is missing, 3 if a test failed."""
    options = _options()
    servers: list[str] = options.servers
    environment = dict(os.environ)
    if options.url:
        server = make_url(options.url).get_backend_name()
        if server not in SERVERS:
            raise SystemExit(f"--url: no server is called {server}; those known are {', '.join(SERVERS)}")
        servers = [server]
        environment[f"SA_TASKQUEUE_TEST_{server.upper()}_URL"] = options.url
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        status = _run(servers, report, environment, options)
        if not report.exists():
            print("no test was run", file=sys.stderr)
            return 1
        matrix = Matrix.read(json.loads(report.read_text(encoding="utf-8")))
    listed = [name for name in servers if name not in PINNED]
    difference = compare(matrix, Expected.read(listed), listed)
    if difference:
        print(difference, file=sys.stderr)
    print(json.dumps(matrix.summary()))
    if difference or not matrix.combinations:
        return 1
    return TESTS_FAILED if status or matrix.failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=main.__doc__)
    parser.add_argument("--json", action="store_true", help="print the last line only, the tests' output to stderr")
    parser.add_argument("--servers", type=lambda names: names.split(","), default=USUAL, metavar="NAMES")
    parser.add_argument("--url", help="run on this server only, such as oracle+oracledb://system:secret@host/...")
    parser.add_argument("-n", default="3", metavar="PROCESSES", help="processes (default: %(default)s)")
    return parser.parse_args()


def _run(servers: list[str], report: Path, environment: dict[str, str], options: argparse.Namespace) -> int:
    command = [sys.executable, "-m", "pytest", "-q", "-ra", "-n", options.n, "tests/conformance"]
    command += ["-p", "tests.matrix.recorder", f"--matrix-report={report}", "--every-combination"]
    command += [f"--servers={','.join(servers)}", "--require-all-servers"]
    output = sys.stderr if options.json else None
    return subprocess.run(command, cwd=ROOT, env=environment, stdout=output, check=False).returncode


sys.exit(main())
