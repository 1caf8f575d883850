"""`python -m unmask`, for machines where the script is not on the path."""

import sys

from unmask.cli import main

sys.exit(main())
