"""The command line: arguments in, one call of the library, exit status out."""

from __future__ import annotations

import json
import sys


def main() -> None:
    """Entry point of ``shoal``.  Exit status: 0 done, 1 a check failed, 2 bad usage or input, 3 infeasible."""
    from shoal.cli.app import app
    from shoal.errors import ShoalError

    try:
        app()
    except ShoalError as error:
        _refuse(str(error), error.exit_status)
    except KeyboardInterrupt:
        _refuse("interrupted; nothing was published", 130)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        _refuse(f"{error.strerror or type(error).__name__}{where}", 2)
    except MemoryError:
        _refuse("out of memory", 2)


def _refuse(message: str, status: int) -> None:
    if "--json" in sys.argv:
        print(json.dumps({"error": message, "status": status}, ensure_ascii=False))
    print(f"shoal: {message}", file=sys.stderr)
    sys.exit(status)
