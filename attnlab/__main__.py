"""``python -m attnlab`` is the command ``attnlab``."""

from attnlab.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
