"""``python -m attnbook`` is the command ``attnlab``."""

from attnbook.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
