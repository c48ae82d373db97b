"""`python -m heddle` is the program `heddle`."""

import sys

from heddle._program import main

sys.exit(main())
