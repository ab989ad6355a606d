"""`python -m hilap`: the command line."""

from hilap.cli import main

if __name__ == "__main__":
    main()
